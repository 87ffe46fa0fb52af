import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages, type StreamReader } from '../../../../lib/core/operations/index.ts'

const answer = (content: unknown, stop_reason = 'end_turn') => ({
  type: 'message',
  role: 'assistant',
  content,
  stop_reason,
})
const substanceOf = (...blocks: unknown[]) => messages.readAnswer(answer(blocks)).substance
const usageOf = (usage: unknown) => messages.readAnswer({ content: [], usage }).usage

describe('an Anthropic-style message', () => {
  it('holds output when one of its blocks does', () => {
    assert.equal(substanceOf({ type: 'text', text: 'Good morning.' }), 'output')
    assert.equal(substanceOf({ type: 'thinking', thinking: 'Let me see.', signature: 'x' }), 'output')
    assert.equal(substanceOf({ type: 'redacted_thinking', data: 'x' }), 'output')
    assert.equal(
      substanceOf({ type: 'text', text: '' }, { type: 'tool_use', name: 'f', input: {} }),
      'output',
    )
    assert.equal(substanceOf({ type: 'server_tool_use', name: 'web_search' }), 'output')
  })

  it('is empty without blocks, or with only empty blocks', () => {
    assert.equal(substanceOf(), 'empty')
    assert.equal(substanceOf({ type: 'text', text: '' }, { type: 'thinking', thinking: '' }), 'empty')
    assert.equal(substanceOf(null, 7, 'x'), 'empty')
  })

  it('is a refusal by its stop reason, with or without text', () => {
    assert.equal(messages.readAnswer(answer([], 'refusal')).substance, 'refusal')
    assert.equal(messages.readAnswer(answer([{ type: 'text', text: 'No.' }], 'refusal')).substance, 'refusal')
  })

  it('is invalid without content', () => {
    for (const json of [null, 7, [], {}, { content: 'x' }, { type: 'error', error: {} }]) {
      assert.throws(() => messages.readAnswer(json), SyntaxError)
    }
  })

  it('counts tokens read from and written to the cache as input', () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 300,
      cache_creation_input_tokens: 5,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 4 },
    }
    assert.deepEqual(usageOf(usage), {
      inputTokens: 315,
      cachedInputTokens: 300,
      cacheWriteTokens: 5,
      cacheWrite1hTokens: 3,
      outputTokens: 7,
      reasoningTokens: 4,
      webSearches: 0,
    })
    const searched = { ...usage, server_tool_use: { web_search_requests: 3, web_fetch_requests: 9 } }
    assert.equal(usageOf(searched).webSearches, 3)
    assert.equal(usageOf({ input_tokens: 0, output_tokens: 0 }).inputTokens, 0)
    assert.equal(usageOf({ cache_read_input_tokens: 3 }).inputTokens, undefined)
    for (const nothing of [undefined, null, 7])
      assert.deepEqual(new Set(Object.values(usageOf(nothing))), new Set([undefined]))
    assert.equal(usageOf({ output_tokens: -3 }).outputTokens, undefined)
  })

  it('estimates its output over text, thinking and tool input', () => {
    const estimate = (...blocks: unknown[]) => messages.readAnswer(answer(blocks)).estimateOutput()
    assert.equal(estimate({ type: 'text', text: 'one two three four' }), 4)
    assert.equal(estimate({ type: 'thinking', thinking: 'one two' }, { type: 'text', text: 'one two' }), 4)
    const input = { city: 'Oslo', days: 3 }
    assert.ok(estimate({ type: 'tool_use', name: 'weather', input }) >= 6)
  })

  it('accepts a tool input that is nested too deep to be serialised', () => {
    const depth = 100_000
    const input = JSON.parse('{"a":'.repeat(depth) + 1 + '}'.repeat(depth))
    assert.ok(messages.readAnswer(answer([{ type: 'tool_use', name: 'f', input }])).estimateOutput() >= 1)
  })
})

const message = (usage: unknown) => messages.readAnswer({ content: [], usage }).usage

describe('the cost of a message beside its answer', () => {
  const step = (type: string, input_tokens: number, output_tokens: number) => ({
    type,
    input_tokens,
    cache_read_input_tokens: 10,
    cache_creation_input_tokens: 20,
    cache_creation: { ephemeral_1h_input_tokens: 5 },
    output_tokens,
  })
  const iterations = [
    step('compaction', 180_000, 3500),
    step('message', 23_000, 1000),
    step('advisor_message', 400, 50),
  ]
  const usage = { input_tokens: 23_000, output_tokens: 1000, iterations }
  const whole = {
    inputTokens: 203_460,
    cachedInputTokens: 20,
    cacheWriteTokens: 40,
    cacheWrite1hTokens: 10,
    outputTokens: 4550,
    reasoningTokens: undefined,
    webSearches: 0,
  }

  it('is added: the summary of a long conversation, and the advice of another model', () => {
    assert.deepEqual(message(usage), whole)
    for (const none of [[], null, 7, [step('message', 23_000, 1000)], [null]]) {
      const { inputTokens, outputTokens } = message({ ...usage, iterations: none })
      assert.deepEqual([inputTokens, outputTokens], [23_000, 1000])
    }
  })

  it('is added once in a stream, for any number of reports', () => {
    const reader = readAll(messages.streamReader({ json: { stream: true }, answers: 1 }), [
      { type: 'message_start', message: { usage: { input_tokens: 1, iterations: iterations.slice(0, 1) } } },
      { type: 'message_delta', delta: {}, usage },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1000 } },
    ])
    assert.deepEqual(reader.usage, whole)
    assert.equal(reader.unreportedOutput, 0)
  })
})

function readAll(reader: StreamReader, events: readonly object[]): StreamReader {
  for (const event of events) reader.read({ event: undefined, data: JSON.stringify(event) })
  return reader
}
