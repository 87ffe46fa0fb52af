import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, describe, it } from 'node:test'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'
import { messageItem, numbered, responseBody } from '../../support/responses-upstream.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  messageAnswer,
  messageEvent,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf, user } from './clients.ts'

const OTHER = 'sk-of-globex'
const CARD = '4111 1111 1111 1111'
const CODENAME = 'nightingale'

/** The behaviour of the model, as the prompt of a test asks for it. */
interface Asked {
  readonly as: 'text' | 'arguments'
  readonly text: string
}

/** The arguments of the tool that the model calls. */
const argumentsOf = (text: string): string => JSON.stringify({ city: 'Köln 🦉', note: text, list: [text] })

/** Pieces of three UTF-16 units, so that a match lies across many, and a character across two. */
function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,3}/gu) ?? []
}

function chatScript({ as, text }: Asked) {
  const call = (args: string, first: boolean) => ({
    index: 0,
    ...(first && { id: 'call_1', type: 'function' }),
    function: { ...(first && { name: 'note' }), arguments: args },
  })
  if (as === 'text')
    return {
      message: { role: 'assistant', content: text },
      finish: 'stop',
      deltas: [{ role: 'assistant', content: '' }, ...pieces(text).map((content) => ({ content }))],
    }
  const args = argumentsOf(text)
  return {
    message: { role: 'assistant', content: null, tool_calls: [call(args, true)] },
    finish: 'tool_calls',
    deltas: [
      { role: 'assistant', content: null, tool_calls: [call('', true)] },
      ...pieces(args).map((each) => ({ tool_calls: [call(each, false)] })),
    ],
  }
}

function responsesScript({ as, text }: Asked) {
  const args = argumentsOf(text)
  const item =
    as === 'text'
      ? messageItem(text)
      : {
          ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'note', arguments: args },
          status: 'completed',
        }
  const place = { item_id: item.id, output_index: 0, ...(as === 'text' && { content_index: 0 }) }
  const whole = responseBody([item], { store: false })
  const begun = { ...whole, status: 'in_progress', output: [], usage: null }
  const part = { type: 'output_text', annotations: [], logprobs: [] }
  const middle =
    as === 'text'
      ? [
          { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
          ...pieces(text).map((delta) => ({
            ...{ type: 'response.output_text.delta', ...place, delta, obfuscation: 'xyz' },
            logprobs: [{ token: delta, logprob: -1, top_logprobs: [] }],
          })),
          { type: 'response.output_text.done', ...place, text, logprobs: [] },
          { type: 'response.content_part.done', ...place, part: { ...part, text } },
        ]
      : [
          ...pieces(args).map((delta) => ({
            type: 'response.function_call_arguments.delta',
            ...place,
            delta,
          })),
          { type: 'response.function_call_arguments.done', ...place, name: 'note', arguments: args },
        ]
  const empty = as === 'text' ? { ...item, content: [] } : { ...item, arguments: '' }
  const events = [
    { type: 'response.created', response: begun },
    {
      ...{ type: 'response.output_item.added', output_index: 0 },
      item: { ...empty, status: 'in_progress' },
    },
    ...middle,
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: whole },
  ]
  return { whole, events: numbered(events) }
}

function messagesScript({ as, text }: Asked) {
  const input = JSON.parse(argumentsOf(text))
  const block =
    as === 'text' ? { type: 'text', text } : { type: 'tool_use', id: 'toolu_1', name: 'note', input }
  const empty = as === 'text' ? { ...block, text: '' } : { ...block, input: {} }
  const stop_reason = as === 'text' ? 'end_turn' : 'tool_use'
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'v',
    content: [],
    stop_reason: null,
  }
  const deltas = pieces(as === 'text' ? text : argumentsOf(text)).map((each) =>
    as === 'text' ? { type: 'text_delta', text: each } : { type: 'input_json_delta', partial_json: each },
  )
  return {
    extra: { content: [block], stop_reason },
    events: [
      messageEvent('message_start', {
        message: { ...message, usage: { input_tokens: 7, output_tokens: 1 } },
      }),
      messageEvent('content_block_start', { index: 0, content_block: empty }),
      ...deltas.map((delta) => messageEvent('content_block_delta', { index: 0, delta })),
      messageEvent('content_block_stop', { index: 0 }),
      messageEvent('message_delta', { delta: { stop_reason }, usage: { output_tokens: 9 } }),
      messageEvent('message_stop'),
    ],
  }
}

/** Streams wait for it before their second half. */
let gate: Promise<void> = Promise.resolve()

async function inHalves(res: ServerResponse, events: readonly string[]): Promise<void> {
  const half = Math.floor(events.length / 2)
  await stream(res, events.slice(0, half), { end: false })
  await gate
  for (const event of events.slice(half)) res.write(event)
  res.end()
}

let upstream: ScriptedUpstream
let gateway: AssembledGateway

const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream((res, { path, raw, json }) => {
    const asked = JSON.parse(
      Buffer.from(/ask:([\w-]+)/.exec(raw.toString())?.[1] ?? '', 'base64url').toString(),
    )
    if (path.endsWith('/messages')) {
      const { extra, events } = messagesScript(asked)
      return json.stream ? inHalves(res, events) : messageAnswer(res, '', extra)
    }
    if (path.endsWith('/responses')) {
      const { whole, events } = responsesScript(asked)
      return json.stream ? inHalves(res, events) : answerJson(res, 200, whole)
    }
    const { message, finish, deltas } = chatScript(asked)
    if (!json.stream) return chatAnswer(res, '', { choices: [{ index: 0, message, finish_reason: finish }] })
    return inHalves(res, [
      ...deltas.map((delta) => chatChunk(delta)),
      chatChunk({}, finish),
      'data: [DONE]\n\n',
    ])
  })
  cleanUp.after(() => upstream.close())
  const guard = { keys: ['key_acme'], input: false, windowChars: 40 }
  gateway = await assembledGateway(cleanUp, {
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_globex', account: 'globex', secret: OTHER },
    ],
    models: ['chat', 'translated', 'claude'].map((id) => ({ id, kind: 'chat' })),
    lines: [
      {
        ...{ id: 'o', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
        models: { chat: 'u' },
      },
      {
        ...{ id: 't', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
        ...{ endpoints: ['chat/completions'], models: { translated: 'u' } },
      },
      {
        ...{ id: 'a', provider: 'p', protocol: 'anthropic', baseUrl: `${upstream.url}/v1` },
        models: { claude: 'v' },
      },
    ],
    guards: [
      { ...guard, name: 'cards', patterns: { mask: ['\\d{4}( \\d{4}){3}'] } },
      { ...guard, name: 'names', patterns: { refuse: [CODENAME], reason: 'it names a project' } },
    ],
  })
})

/** The answer as an SDK has read it, and all that was sent to it. */
interface Read {
  readonly text: string
  /** The arguments of the tool, parsed. */
  readonly args: unknown
  readonly all: string
}

type Ask = (apiKey: string, prompt: string, streams: boolean, onText: (text: string) => void) => Promise<Read>

const parsed = (args: string): unknown => (args === '' ? undefined : JSON.parse(args))
const NOTE = { type: 'object' as const }

const chatOn =
  (model: string): Ask =>
  async (apiKey, prompt, streams, onText) => {
    const client = openaiOf(gateway.url, { apiKey })
    const tools = [{ type: 'function' as const, function: { name: 'note', parameters: NOTE } }]
    const body = { model, messages: user(prompt), tools }
    if (!streams) {
      const answer = await client.chat.completions.create(body)
      const { content, tool_calls: [call] = [] } = answer.choices[0]?.message ?? {}
      const args = call?.type === 'function' ? call.function.arguments : ''
      return { text: content ?? '', args: parsed(args), all: JSON.stringify(answer) }
    }
    let text = ''
    let args = ''
    const all: unknown[] = []
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      all.push(chunk)
      text += chunk.choices[0]?.delta.content ?? ''
      args += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? ''
      onText(text + args)
    }
    return { text, args: parsed(args), all: JSON.stringify(all) }
  }

const responsesOn =
  (model: string): Ask =>
  async (apiKey, prompt, streams, onText) => {
    const client = openaiOf(gateway.url, { apiKey })
    const tools = [{ type: 'function' as const, name: 'note', parameters: NOTE, strict: false }]
    const body = { model, input: prompt, tools, store: false }
    const argumentsIn = (output: readonly { type: string }[]) =>
      output.map((item) => ('arguments' in item ? String(item.arguments) : '')).join('')
    if (!streams) {
      const answer = await client.responses.create(body)
      const args = argumentsIn(answer.output)
      return { text: answer.output_text, args: parsed(args), all: JSON.stringify(answer) }
    }
    let text = ''
    let args = ''
    const all: unknown[] = []
    for await (const event of await client.responses.create({ ...body, stream: true })) {
      all.push(event)
      if (event.type === 'response.output_text.delta') text += event.delta
      if (event.type === 'response.function_call_arguments.delta') args += event.delta
      onText(text + args)
      if (event.type === 'error') throw new Error(event.message)
      if (event.type === 'response.completed')
        assert.equal(argumentsIn(event.response.output), args, 'the last event repeats the pieces')
    }
    return { text, args: parsed(args), all: JSON.stringify(all) }
  }

const messagesOn =
  (model: string): Ask =>
  async (apiKey, prompt, streams, onText) => {
    const client = anthropicOf(gateway.url, { apiKey })
    const tools = [{ name: 'note', input_schema: NOTE }]
    const body = { model, max_tokens: 99, messages: user(prompt), tools }
    const read = ({ content }: { content: readonly { type: string }[] }, all: unknown): Read => ({
      text: content.map((block) => ('text' in block ? String(block.text) : '')).join(''),
      args: content.map((block) => ('input' in block ? block.input : undefined)).find((each) => each),
      all: JSON.stringify(all),
    })
    if (!streams) {
      const answer = await client.messages.create(body)
      return read(answer, answer)
    }
    const all: unknown[] = []
    let sent = ''
    const answer = client.messages.stream(body)
    answer.on('streamEvent', (event) => {
      all.push(event)
      if (event.type !== 'content_block_delta') return
      if (event.delta.type === 'text_delta') sent += event.delta.text
      if (event.delta.type === 'input_json_delta') sent += event.delta.partial_json
      onText(sent)
    })
    return read(await answer.finalMessage(), all)
  }

const APIS: Readonly<Record<string, Ask>> = {
  chat: chatOn('chat'),
  'chat on an Anthropic line': chatOn('claude'),
  responses: responsesOn('chat'),
  'responses on a chat line': responsesOn('translated'),
  messages: messagesOn('claude'),
  'messages on a chat line': messagesOn('translated'),
}

const promptFor = (asked: Asked): string => `ask:${Buffer.from(JSON.stringify(asked)).toString('base64url')}`

describe('what official SDKs get of a guarded answer', () => {
  for (const [api, ask] of Object.entries(APIS))
    for (const as of ['text', 'arguments'] as const)
      for (const streams of [false, true]) {
        const name = `${api}, ${as}, ${streams ? 'streamed' : 'plain'}`
        const contentOf = ({ text, args }: Read) => (as === 'text' ? text : args)
        const shown = (text: string) => (as === 'text' ? text : JSON.parse(argumentsOf(text)))

        it(`${name}: masked for the selected tenant, whole for the other`, async () => {
          const before = `Grüße 🦉, ${'the card that was asked for is '.repeat(3)}`
          const after = ` – danke 🦉 ${'and so on '.repeat(8)}`
          const prompt = promptFor({ as, text: before + CARD + after })
          const mine = await ask(KEY, prompt, streams, () => {})
          assert.deepEqual(contentOf(mine), shown(`${before}[removed]${after}`))
          assert.doesNotMatch(mine.all, /111 1|1 111/)
          const other = await ask(OTHER, prompt, streams, () => {})
          assert.deepEqual(contentOf(other), shown(before + CARD + after))
        })

        it(`${name}: refused for the selected tenant, whole for the other`, async () => {
          const before = `Grüße 🦉, ${'we have agreed on a name: '.repeat(5)}`
          const prompt = promptFor({ as, text: `${before}project ${CODENAME} it is, and so on` })
          const isSent = Promise.withResolvers<void>()
          if (streams) gate = isSent.promise
          let seen = ''
          await assert.rejects(
            ask(KEY, prompt, streams, (text) => {
              seen = text
              if (text.includes('agreed')) isSent.resolve()
            }),
            (error: Error & { status?: number; code?: string }) => {
              assert.match(`${error.code} ${error.message}`, /content_filtered|is not allowed/)
              if (!streams) assert.equal(error.status, 400)
              return true
            },
          )
          assert.doesNotMatch(seen, /nightingale|it is,/)
          if (streams) assert.match(seen, /agreed/, 'what came before was sent')
          const other = await ask(OTHER, prompt, streams, () => {})
          assert.match(JSON.stringify(contentOf(other)), /project nightingale it is/)
        })
      }
})
