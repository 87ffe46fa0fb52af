import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  ANTHROPIC,
  ANTHROPIC_STREAM,
  answer,
  dataOf,
  exchange,
  gatewayFor,
  MODES,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
  saidTo,
} from '../../support/exchange.ts'
import {
  chatAnswer,
  chatChunk,
  messageAnswer,
  messageEvent,
  messageEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'

const done = 'data: [DONE]\n\n'
const role = chatChunk({ role: 'assistant', content: '' })
const choice = (message: object, finish_reason = 'stop') => ({
  choices: [{ index: 0, message, finish_reason }],
})
const start = messageEvents([])[0] ?? ''
const stop = (stop_reason: string) => [
  messageEvent('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 0 } }),
  messageEvent('message_stop'),
]
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }

interface Row {
  what: string
  mode: Mode
  script: UpstreamScript
  /** Stands in what the caller gets. */
  shows: RegExp
}

/** Every kind of output, and what looks empty but is an answer. */
const ANSWERS: Row[] = [
  {
    what: 'a refusal in the model’s own words',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, '', choice({ role: 'assistant', content: null, refusal: 'I will not.' })),
    shows: /I will not\./,
  },
  {
    what: 'a streamed refusal',
    mode: OPENAI_STREAM,
    script: (res) => stream(res, [role, chatChunk({ refusal: 'I will not.' }), chatChunk({}, 'stop'), done]),
    shows: /I will not\./,
  },
  {
    what: 'a refusal without text',
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, '', { content: [], stop_reason: 'refusal' }),
    shows: /"stop_reason":"refusal"/,
  },
  {
    what: 'a streamed refusal without text',
    mode: ANTHROPIC_STREAM,
    script: (res) => stream(res, [start, ...stop('refusal')]),
    shows: /"stop_reason":"refusal"/,
  },
  {
    what: 'output that moderation cut short',
    mode: OPENAI,
    script: (res) => chatAnswer(res, '', choice({ role: 'assistant', content: 'Once' }, 'content_filter')),
    shows: /Once.*content_filter/,
  },
  {
    what: 'a stream that moderation cut short',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [role, chatChunk({ content: 'Once' }), chatChunk({}, 'content_filter'), done]),
    shows: /Once[\s\S]*content_filter/,
  },
  {
    what: 'a tool call without text',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, '', choice({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls')),
    shows: /call_1/,
  },
  {
    what: 'a streamed tool call without text',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        role,
        chatChunk({ tool_calls: [{ index: 0, ...call }] }),
        chatChunk({}, 'tool_calls'),
        done,
      ]),
    shows: /call_1/,
  },
  {
    what: 'reasoning without text',
    mode: OPENAI_STREAM,
    script: (res) => stream(res, [chatChunk({ reasoning_content: 'Hm.' }), chatChunk({}, 'length'), done]),
    shows: /Hm\./,
  },
  {
    what: 'a tool use without text',
    mode: ANTHROPIC,
    script: (res) =>
      messageAnswer(res, '', { content: [{ type: 'tool_use', id: 'tu_1', name: 'f', input: {} }] }),
    shows: /tu_1/,
  },
  {
    what: 'a streamed tool use without text',
    mode: ANTHROPIC_STREAM,
    script: (res) =>
      stream(res, [
        start,
        messageEvent('content_block_start', {
          index: 0,
          content_block: { type: 'tool_use', id: 'tu_1', name: 'f', input: {} },
        }),
        messageEvent('content_block_stop', { index: 0 }),
        ...stop('tool_use'),
      ]),
    shows: /tu_1/,
  },
]

describe('an answer', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const other = await startUpstream()
  cleanUp.after(() => other.close())

  for (const mode of MODES) {
    it(`is relayed and traced (${modeName(mode)})`, async (t) => {
      upstream.script = (res) => answer(res, mode, 'Bonjour')
      const { protocol } = mode
      const gateway = await gatewayFor(t, {
        lines: [upstream, other].map(({ url }) => ({ url, protocol })),
      })
      const got = await exchange(gateway, mode)
      assert.equal(got.status, 200)
      assert.equal(saidTo(mode, got), 'Bonjour')
      assert.equal(got.broken, false)
      const { outcome, error_code, routing, usage } = await gateway.entry(got.requestId)
      assert.deepEqual([outcome, error_code], ['completed', null])
      assert.equal(usage?.source, 'measured')
      assert.equal(routing?.strategy, 'priority')
      assert.equal(routing?.region, 'local')
      const [attempt, ...more] = routing?.attempts ?? []
      assert.deepEqual(more, [])
      assert.ok(attempt)
      const { connect_ms, first_byte_ms, duration_ms, ...rest } = attempt
      assert.deepEqual(rest, {
        line: 'line-0',
        protocol,
        upstream_model: 'upstream-chat-0',
        upstream_status: 200,
        outcome: 'completed',
        timeout_phase: null,
        detail: null,
      })
      assert.ok(connect_ms !== null && first_byte_ms !== null)
      assert.ok(connect_ms <= first_byte_ms && first_byte_ms <= duration_ms)
      assert.equal(other.requests.length, 0)
    })
  }

  for (const { what, mode, script, shows } of ANSWERS) {
    it(`has ${what} (${modeName(mode)})`, async (t) => {
      upstream.script = script
      const { protocol } = mode
      const gateway = await gatewayFor(t, {
        lines: [upstream, other].map(({ url }) => ({ url, protocol })),
      })
      const got = await exchange(gateway, mode)
      assert.equal(got.status, 200)
      assert.match(got.text, shows)
      if (mode.stream) assert.ok(dataOf(got.text).length > 0)
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.outcome, 'completed')
      assert.ok(entry.usage, 'it is billed')
      assert.equal(other.requests.length, 0, 'no other line is tried')
    })
  }
})
