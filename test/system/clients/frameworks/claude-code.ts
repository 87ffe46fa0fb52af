import type Anthropic from '@anthropic-ai/sdk'
import { z } from 'zod'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, type Framework, OPUS, type Place, type Reply } from './framework.ts'
import { postForEvents, type RawEvent } from './raw-events.ts'
import { runTool, TOOLS } from './tools.ts'

/** The form of the requests of Claude Code 2.1.332, which is too large to be installed here, with words of ours. */
const HEADERS = {
  'anthropic-beta':
    'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,per-turn-control-2026-07-01,mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,effort-2025-11-24',
  'anthropic-dangerous-direct-browser-access': 'true',
  'anthropic-version': '2023-06-01',
  'user-agent': 'claude-cli/2.1.332 (external, sdk-cli)',
  'x-app': 'cli',
  'x-stainless-retry-count': '0',
}
const CACHED = { cache_control: { type: 'ephemeral' } }
const $schema = 'https://json-schema.org/draft/2020-12/schema'

/** Its own tools have bounds, and one is only named until it is searched for. */
const OWN_TOOLS = [
  {
    name: 'Read',
    description: 'Reads a file.',
    input_schema: {
      $schema,
      type: 'object',
      properties: {
        file_path: { type: 'string', maxLength: 4096 },
        offset: { type: 'integer', minimum: 0, maximum: 9007199254740991 },
        limit: { type: 'integer', exclusiveMinimum: 0 },
        pages: { type: 'string', pattern: '^[0-9-]+$' },
      },
      required: ['file_path'],
      additionalProperties: false,
    },
  },
  {
    name: 'Placeholder',
    description: 'Keeps a place.',
    input_schema: { type: 'object', properties: {} },
    defer_loading: true,
  },
]

type Block = { type: string } & Record<string, unknown>

async function ask(asked: Ask, { url, apiKey, headers, model }: Place): Promise<Reply> {
  const tools: object[] = [...OWN_TOOLS]
  if (asked.tools)
    for (const { parameters, name, description } of TOOLS)
      tools.push({ name: `mcp__town__${name}`, description, input_schema: { $schema, ...parameters } })
  if (asked.form)
    tools.push({
      name: 'StructuredOutput',
      description: 'Takes the answer.',
      input_schema: z.toJSONSchema(FORM),
    })
  const environment = { role: 'system', output_config: { effort: 'medium' } }
  const messages: object[] = [
    { role: 'user', content: [{ type: 'text', text: '<system-reminder>\nBe brief.\n</system-reminder>' }] },
    { ...environment, content: [{ type: 'text', text: '# Environment\nA test.', ...CACHED }] },
  ]
  let last: Reply = { text: '', pieces: 0 }
  for (const [i, question] of asked.questions.entries()) {
    const text = { type: 'text', text: question }
    if (i === 0) (messages[0] as { content: object[] }).content.push(text)
    else messages.push({ role: 'user', content: [{ ...text, ...CACHED }] })
    for (;;) {
      const events = await postForEvents(
        `${url}/v1/messages?beta=true`,
        { ...HEADERS, 'x-api-key': apiKey, ...headers },
        {
          model,
          messages,
          system: [
            { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332; cc_entrypoint=sdk-cli;' },
            { type: 'text', text: SYSTEM, ...CACHED },
          ],
          tools,
          metadata: {
            user_id: JSON.stringify({
              device_id: 'd'.repeat(64),
              account_uuid: '',
              session_id: 's'.repeat(36),
            }),
          },
          max_tokens: 128000,
          thinking: { type: 'adaptive', display: 'omitted' },
          context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
          output_config: { effort: 'medium' },
          stream: true,
        },
      )
      const content = blocksOf(events)
      messages.push({ role: 'assistant', content })
      const uses = content.filter(({ type }) => type === 'tool_use') as unknown as Anthropic.ToolUseBlock[]
      const filled = uses.find(({ name }) => name === 'StructuredOutput')
      if (filled) return { text: '', pieces: 1, form: filled.input }
      if (uses.length === 0) {
        const texts = content.flatMap((block) => (block.type === 'text' ? [block.text as string] : []))
        const pieces = events.filter(
          ({ delta }) => (delta as Block | undefined)?.type === 'text_delta',
        ).length
        last = { text: texts.join(''), pieces }
        break
      }
      messages.push({
        role: 'user',
        content: uses.map(({ id, name, input }) => ({
          tool_use_id: id,
          type: 'tool_result',
          ...resultOf(name, input, asked),
        })),
      })
    }
  }
  return last
}

function resultOf(name: string, input: unknown, { file }: Ask): object {
  if (!file || name !== 'Read') return { content: runTool(name, input), is_error: false }
  const source = { type: 'base64', data: file.bytes.toString('base64'), media_type: file.type }
  if (file.type === 'image/png') return { content: [{ type: 'image', source }] }
  const read = { type: 'text', text: `PDF file read: a.pdf (${file.bytes.length} bytes)` }
  return { content: [read, { type: 'document', source }], ...CACHED }
}

/** Puts the blocks of a stream together. */
function blocksOf(events: readonly RawEvent[]): Block[] {
  const blocks: Block[] = []
  const inputs = new Map<Block, string>()
  for (const { type, index, content_block, delta } of events) {
    if (type === 'content_block_start') blocks[index as number] = { ...(content_block as Block) }
    const block = blocks[index as number]
    if (type !== 'content_block_delta' || !block) continue
    const { type: _, partial_json, ...members } = delta as Block
    if (typeof partial_json === 'string') inputs.set(block, (inputs.get(block) ?? '') + partial_json)
    else for (const [name, piece] of Object.entries(members)) block[name] = `${block[name] ?? ''}${piece}`
  }
  for (const [block, json] of inputs) block.input = JSON.parse(json || '{}')
  return blocks
}

export const CLAUDE_CODE: readonly Framework[] = [
  {
    name: 'Claude Code 2.1.332',
    speaks: 'messages',
    model: OPUS,
    alwaysStreams: true,
    readsFiles: true,
    ask,
  },
]
