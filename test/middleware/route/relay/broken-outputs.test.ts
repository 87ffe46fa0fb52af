import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../../lib/core/operations/index.ts'
import { chatBody, messageBody, startGateway } from '../../../support/gateway.ts'
import { chatChunk, messageEvent, startUpstream } from '../../../support/scripted-upstream.ts'

type Json = Record<string, unknown>

/** The text that the model has written, in deltas of several words. */
const WRITTEN = Array.from({ length: 20 }, (_, i) => `The ${i}th thought is about the weather in Oslo. `)
const TEXT = WRITTEN.join('')
/** Reasoning that only the upstream can read: five characters of it are a token. */
const SEALED = 'A'.repeat(5 * estimateTokens(TEXT))

const chat = (delta: (text: string, i: number) => Json): string[] => [
  chatChunk({ role: 'assistant', content: '' }),
  ...WRITTEN.map((text, i) => chatChunk(delta(text, i))),
]
const toolCall = (members: Json) => ({ tool_calls: [{ index: 0, id: 'c', ...members }] })
const message = (start: Json, delta?: (text: string) => Json): string[] => [
  messageEvent('message_start', {
    message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 7 } },
  }),
  messageEvent('content_block_start', { index: 0, content_block: start }),
  ...(delta
    ? WRITTEN.map((text) => messageEvent('content_block_delta', { index: 0, delta: delta(text) }))
    : []),
]
const response = (type: string, delta: (text: string) => unknown = (text) => text): string[] => [
  messageEvent('response.created', { response: { id: 'r', status: 'in_progress', output: [] } }),
  ...WRITTEN.map((text) => messageEvent(type, { output_index: 0, item_id: 'i', delta: delta(text) })),
]
const item = (members: Json): string[] => [
  messageEvent('response.created', { response: { id: 'r', status: 'in_progress', output: [] } }),
  messageEvent('response.output_item.added', {
    output_index: 0,
    item: { id: 'i', ...members, summary: [], encrypted_content: undefined },
  }),
  messageEvent('response.reasoning_summary_text.delta', {
    output_index: 0,
    item_id: 'i',
    delta: 'In short.',
  }),
  messageEvent('response.output_item.done', { output_index: 0, item: { id: 'i', ...members } }),
]

const CHAT = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'

/** Each form in which upstreams send what a model has written, without any usage. */
const FORMS: readonly [what: string, path: string, events: string[]][] = [
  ['content', CHAT, chat((content) => ({ content }))],
  ['reasoning_content', CHAT, chat((reasoning_content) => ({ reasoning_content }))],
  ['reasoning', CHAT, chat((reasoning) => ({ reasoning }))],
  [
    'reasoning beside an empty reasoning_content',
    CHAT,
    chat((reasoning) => ({ reasoning_content: '', reasoning })),
  ],
  [
    'reasoning_details of text',
    CHAT,
    chat((text) => ({ reasoning_details: [{ type: 'reasoning.text', text }] })),
  ],
  [
    'reasoning_details of a summary',
    CHAT,
    chat((summary) => ({ reasoning_details: [{ type: 'reasoning.summary', summary }] })),
  ],
  [
    'reasoning_details beside the same reasoning',
    CHAT,
    chat((text) => ({ reasoning: text, reasoning_details: [{ type: 'reasoning.text', text }] })),
  ],
  [
    'sealed reasoning_details',
    CHAT,
    [chatChunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: SEALED }] })],
  ],
  [
    'sealed reasoning_details behind what they show',
    CHAT,
    [
      ...chat((text) => ({ reasoning: text, reasoning_details: [{ type: 'reasoning.text', text }] })),
      chatChunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: SEALED }] }),
    ],
  ],
  [
    'sealed reasoning_details beside what they show',
    CHAT,
    [
      chatChunk({
        reasoning: TEXT,
        reasoning_details: [
          { type: 'reasoning.summary', summary: TEXT },
          { type: 'reasoning.encrypted', data: SEALED },
        ],
      }),
    ],
  ],
  ['refusal', CHAT, chat((refusal) => ({ refusal }))],
  ['parts of content', CHAT, chat((text) => ({ content: [{ type: 'text', text }] }))],
  [
    'parts of thinking',
    CHAT,
    chat((text) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] })),
  ],
  [
    'parts of reasoning',
    CHAT,
    chat((text) => ({ content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text }] }] })),
  ],
  ['parts of a refusal', CHAT, chat((refusal) => ({ content: [{ type: 'refusal', refusal }] }))],
  ['arguments of a function', CHAT, chat((text) => toolCall({ function: { arguments: text } }))],
  [
    'arguments as an object',
    CHAT,
    chat((text) => toolCall({ function: { name: 'f', arguments: { text } } })),
  ],
  ['input of a custom tool', CHAT, chat((text) => toolCall({ type: 'custom', custom: { input: text } }))],
  ['arguments of the older form', CHAT, chat((text) => ({ function_call: { arguments: text } }))],
  ['a transcript', CHAT, chat((transcript) => ({ audio: { id: 'a', transcript } }))],
  ['a text', MESSAGES, message({ type: 'text', text: '' }, (text) => ({ type: 'text_delta', text }))],
  [
    'thinking',
    MESSAGES,
    message({ type: 'thinking', thinking: '' }, (thinking) => ({ type: 'thinking_delta', thinking })),
  ],
  ['sealed thinking', MESSAGES, message({ type: 'redacted_thinking', data: SEALED })],
  [
    'a tool',
    MESSAGES,
    message({ type: 'tool_use', name: 'f', input: {} }, (text) => ({
      type: 'input_json_delta',
      partial_json: text,
    })),
  ],
  [
    "a server's tool",
    MESSAGES,
    message({ type: 'server_tool_use', name: 'f', input: {} }, (text) => ({
      type: 'input_json_delta',
      partial_json: text,
    })),
  ],
  [
    'a compaction',
    MESSAGES,
    message({ type: 'compaction', content: '' }, (content) => ({ type: 'compaction_delta', content })),
  ],
  ['a compaction at once', MESSAGES, message({ type: 'compaction', content: TEXT })],
  ['output_text', RESPONSES, response('response.output_text.delta')],
  ['refusal', RESPONSES, response('response.refusal.delta')],
  ['reasoning_text', RESPONSES, response('response.reasoning_text.delta')],
  ['reasoning_summary_text', RESPONSES, response('response.reasoning_summary_text.delta')],
  ['function_call_arguments', RESPONSES, response('response.function_call_arguments.delta')],
  ['custom_tool_call_input', RESPONSES, response('response.custom_tool_call_input.delta')],
  ['mcp_call_arguments', RESPONSES, response('response.mcp_call_arguments.delta')],
  [
    'mcp_call_arguments as an object',
    RESPONSES,
    response('response.mcp_call_arguments.delta', (text) => ({ text })),
  ],
  ['code_interpreter_call_code', RESPONSES, response('response.code_interpreter_call_code.delta')],
  ['audio.transcript', RESPONSES, response('response.audio.transcript.delta')],
  [
    'sealed reasoning behind its summary',
    RESPONSES,
    item({ type: 'reasoning', summary: [], encrypted_content: SEALED }),
  ],
]

describe('the output of a model whose stream breaks', () => {
  it('is counted, in whatever form it came', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const config = { models: [{ id: 'chat', kind: 'chat', maxOutputTokens: 10_000 }] }
    const openai = await startGateway({
      lines: [{ url: upstream.url, circuit: { minimumCalls: 1000 } }],
      config,
    })
    const anthropic = await startGateway({
      lines: [{ url: upstream.url, protocol: 'anthropic', circuit: { minimumCalls: 1000 } }],
      config,
    })
    t.after(() => Promise.all([openai.close(), anthropic.close()]))
    const least = estimateTokens(TEXT)
    for (const [what, path, events] of FORMS) {
      upstream.script = (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(events.join(''), () => setTimeout(() => res.destroy(), 20))
      }
      const gateway = path === MESSAGES ? anthropic : openai
      const body = { [CHAT]: chatBody(), [MESSAGES]: messageBody({ max_tokens: 10_000 }) }[path] ?? {
        model: 'chat',
        input: 'hi',
      }
      const answer = await gateway.post(path, { ...body, stream: true })
      assert.equal(answer.status, 200, what)
      await answer.text().catch(() => {})
      const { usage, outcome } = await gateway.entry(answer.headers.get('x-request-id') ?? '')
      assert.equal(outcome, 'interrupted', what)
      const tokens = usage?.output_tokens ?? 0
      assert.ok(tokens >= 0.9 * least && tokens <= 1.5 * least, `${path} ${what}: ${tokens} of ${least}`)
    }
  })
})
