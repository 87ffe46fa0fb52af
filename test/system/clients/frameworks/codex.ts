import { randomUUID } from 'node:crypto'
import type OpenAI from 'openai'
import { z } from 'zod'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, dataUrl, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { postForEvents } from './raw-events.ts'
import { runTool, TOOLS } from './tools.ts'

/** The form of the requests of Codex 0.171.0, which is too large to be installed here, with words of ours. */
const HEADERS = {
  accept: 'text/event-stream',
  originator: 'codex_exec',
  'user-agent': 'codex_exec/0.171.0',
  'x-codex-beta-features': 'remote_compaction_v2',
}
const functionTool = (name: string, properties: object = {}) => ({
  type: 'function',
  name,
  description: `Does ${name}.`,
  strict: false,
  parameters: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
})
const OWN_TOOLS = [
  functionTool('exec_command', { cmd: { type: 'string' } }),
  functionTool('view_image', { path: { type: 'string', description: 'Local path of an image.' } }),
  {
    type: 'namespace',
    name: 'multi_agent_v1',
    description: 'Further agents.',
    tools: [functionTool('spawn_agent', { message: { type: 'string' } })],
  },
  functionTool('get_goal'),
]

/** It offers this unless its config has `web_search = "disabled"`. */
const WEB_SEARCH = { type: 'web_search', external_web_access: true }

/** Each item gets an id of Codex's own making. */
const itemOf = (prefix: string, item: object) => ({ ...item, id: `${prefix}_${randomUUID()}` })
const said = (role: string, ...texts: string[]) =>
  itemOf('msg', { type: 'message', role, content: texts.map((text) => ({ type: 'input_text', text })) })

async function ask(asked: Ask, { url, apiKey, headers, model, isSet }: Place): Promise<Reply> {
  const session = randomUUID()
  const input: object[] = [
    said('developer', SYSTEM),
    said(
      'developer',
      '<skills_instructions>\nNone.\n</skills_instructions>',
      '<permissions instructions>\nAll.',
    ),
    said('user', '<environment_context>\n  <cwd>/work</cwd>\n</environment_context>'),
  ]
  const schema = z.toJSONSchema(FORM)
  delete schema.$schema
  const body = {
    model,
    stream: true,
    input,
    tools: [
      ...OWN_TOOLS,
      ...(isSet ? [] : [WEB_SEARCH]),
      ...(asked.tools ? TOOLS.map((tool) => ({ type: 'function', strict: false, ...tool })) : []),
    ],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: session,
    ...(asked.form && {
      text: { format: { type: 'json_schema', strict: true, schema, name: 'codex_output_schema' } },
    }),
    client_metadata: {
      session_id: session,
      thread_id: session,
      turn_id: randomUUID(),
      root_turn_id: randomUUID(),
      'x-codex-window-id': `${session}:0`,
      'x-codex-installation-id': randomUUID(),
      'x-codex-turn-metadata': JSON.stringify({ turn: 1 }),
    },
  }
  const sent = {
    ...HEADERS,
    authorization: `Bearer ${apiKey}`,
    'session-id': session,
    'thread-id': session,
    ...headers,
  }
  let last: Reply = { text: '', pieces: 0 }
  for (const question of asked.questions) {
    input.push(said('user', question))
    for (;;) {
      const events = await postForEvents(`${url}/v1/responses`, sent, body)
      const items = events.flatMap(({ type, item }) =>
        type === 'response.output_item.done' ? [item as OpenAI.Responses.ResponseOutputItem] : [],
      )
      input.push(...items.map(sentBack))
      const calls = items.filter((item) => item.type === 'function_call')
      if (calls.length === 0) {
        const [message] = items.filter((item) => item.type === 'message')
        const [part] = message?.content ?? []
        const text = part?.type === 'output_text' ? part.text : ''
        const pieces = events.filter(({ type }) => type === 'response.output_text.delta').length
        last = { text, pieces, form: asked.form && JSON.parse(text) }
        break
      }
      for (const { name, arguments: args, call_id } of calls)
        input.push(
          itemOf('fco', { type: 'function_call_output', call_id, output: outputOf(name, args, asked) }),
        )
    }
  }
  return last
}

function outputOf(name: string, args: string, { file }: Ask): unknown {
  if (!file || name !== 'view_image') return runTool(name, JSON.parse(args))
  return [{ type: 'input_image', image_url: dataUrl(file), detail: 'high' }]
}

/** Its own members of an item are all that it keeps. */
function sentBack(item: OpenAI.Responses.ResponseOutputItem): object {
  if (item.type === 'reasoning') {
    const { type, id, summary, encrypted_content } = item
    return { type, id, summary, content: null, encrypted_content }
  }
  if (item.type === 'function_call') {
    const { type, id, name, arguments: args, call_id } = item
    return { type, status: 'completed', id, name, arguments: args, call_id }
  }
  const { type, id, role, content } = item as OpenAI.Responses.ResponseOutputMessage
  const parts = content.map((part) => ({
    type: part.type,
    text: part.type === 'output_text' ? part.text : '',
  }))
  return { type, id, role, content: parts }
}

export const CODEX: readonly Framework[] = [
  {
    name: 'Codex 0.171.0',
    speaks: 'responses',
    model: GPT,
    alwaysStreams: true,
    readsFiles: true,
    cannot: ['pdf'],
    ask,
  },
]
