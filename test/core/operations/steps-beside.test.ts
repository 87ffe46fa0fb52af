import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages, type StreamReader } from '../../../lib/core/operations/index.ts'

const message = (usage: unknown) => messages.readAnswer({ content: [], usage }).usage

describe('what a message costs beside its answer', () => {
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

  it('is added once to a stream, however often it is reported', () => {
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
