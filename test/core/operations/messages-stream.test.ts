import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages } from '../../../lib/core/operations/index.ts'

const start = {
  type: 'message_start',
  message: { usage: { input_tokens: 69, cache_read_input_tokens: 6, output_tokens: 2 } },
}
const block = (content_block: object) => ({ type: 'content_block_start', index: 0, content_block })
const delta = (given: object) => ({ type: 'content_block_delta', index: 0, delta: given })
const text = (given: string) => delta({ type: 'text_delta', text: given })
const end = (stop_reason: string, output_tokens = 53) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null },
  usage: { output_tokens },
})
const stop = { type: 'message_stop' }

function read(...events: (object | string)[]) {
  const reader = messages.streamReader({ json: { stream: true }, answers: 1 })
  const readings = events.map((event) => {
    const data = typeof event === 'string' ? event : JSON.stringify(event)
    return reader.read({ event: (event as { type?: string }).type, data })
  })
  const at = (member: 'output' | 'finished' | 'last') => readings.findIndex((reading) => reading[member])
  return { reader, readings, output: at('output'), finished: at('finished'), last: at('last') }
}

describe('an Anthropic-style message stream', () => {
  it('begins with the first text, not with its start, an empty block or a ping', () => {
    const events = [
      start,
      block({ type: 'text', text: '' }),
      { type: 'ping' },
      text(''),
      text('Good'),
      text(' morning'),
    ]
    const { reader, output, finished, last } = read(
      ...events,
      { type: 'content_block_stop' },
      end('end_turn'),
      stop,
    )
    assert.deepEqual([output, finished, last], [4, 7, 8])
    assert.equal(reader.substance, 'output')
    assert.equal(reader.estimatedOutput, 2)
  })

  it('begins with thinking, a tool use or its input', () => {
    const thinking = delta({ type: 'thinking_delta', thinking: 'The' })
    assert.equal(read(block({ type: 'thinking', thinking: '', signature: '' }), thinking).output, 1)
    assert.equal(read(block({ type: 'tool_use', name: 'json', input: {} })).output, 0)
    assert.equal(read(delta({ type: 'input_json_delta', partial_json: '{"a"' })).output, 0)
    assert.equal(read(delta({ type: 'input_json_delta', partial_json: '' })).output, -1)
  })

  it('takes the input from its start and the output from its end', () => {
    const { usage } = read(start, text('Hi'), end('end_turn')).reader
    assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [75, 6, 53])
  })

  it('lets the end correct what was reported at the start, whose output is provisional', () => {
    const corrected = { ...end('end_turn'), usage: { input_tokens: 80, output_tokens: 0 } }
    const { usage } = read(start, corrected).reader
    assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [86, 6, 0])
    const unreported = read(start, { ...end('end_turn'), usage: null }).reader.usage
    assert.notEqual(unreported.inputTokens, undefined)
    assert.equal(unreported.outputTokens, undefined)
  })

  it('is a refusal by its stop reason, and empty without output', () => {
    assert.equal(read(start, end('refusal'), stop).reader.substance, 'refusal')
    assert.equal(read(start, text('I'), end('refusal'), stop).reader.substance, 'refusal')
    assert.equal(
      read(start, block({ type: 'text', text: '' }), end('end_turn'), stop).reader.substance,
      'empty',
    )
  })

  it('tells an error event from output', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    const { readings } = read({ type: 'error', error })
    assert.deepEqual([readings[0]?.error, readings[0]?.output], [error, false])
    assert.notEqual(read({ type: 'error' }).readings[0]?.error, undefined)
  })

  it('passes over empty data and events it does not know, and throws at what is no JSON object', () => {
    const { output } = read(
      '',
      { type: 'news' },
      {},
      { type: 'content_block_delta' },
      { type: 'message_start' },
    )
    assert.equal(output, -1)
    for (const data of ['{', 'null', '7']) assert.throws(() => read(data), SyntaxError)
  })
})
