import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions } from '../../../lib/core/operations/index.ts'

const chunk = (delta: unknown, finish_reason: string | null = null, extra: object = {}) => ({
  id: 'chatcmpl-7',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  ...extra,
})
const USAGE = { choices: [], usage: { prompt_tokens: 15, completion_tokens: 78 } }

function read(events: readonly (object | string)[], { answers = 1, include_usage = false } = {}) {
  const json = { stream: true, stream_options: { include_usage } }
  const reader = chatCompletions.streamReader({ json, answers })
  const readings = events.map((event) =>
    reader.read({ event: undefined, data: typeof event === 'string' ? event : JSON.stringify(event) }),
  )
  const at = (member: 'output' | 'finished' | 'last') => readings.findIndex((reading) => reading[member])
  return { reader, readings, output: at('output'), finished: at('finished'), last: at('last') }
}

describe('a chat completion stream', () => {
  it('begins with the first text, not with a role, an empty text or a filter report', () => {
    const { reader, output, finished, last } = read([
      { choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      chunk({ role: 'assistant', content: '', refusal: null }),
      chunk({ content: 'Good' }),
      chunk({ content: ' morning' }),
      chunk({}, 'stop'),
      '[DONE]',
    ])
    assert.deepEqual([output, finished, last], [2, 4, 5])
    assert.equal(reader.substance, 'output')
    assert.equal(reader.estimatedOutput, 2)
  })

  for (const [what, delta] of Object.entries({
    'reasoning, under either name': { content: null, reasoning_content: 'We' },
    'reasoning by its short name': { reasoning: 'We' },
    'a tool call': { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '' } }] },
    'a refusal': { refusal: 'I' },
    audio: { audio: { data: 'UklGRg==' } },
  })) {
    it(`begins with ${what}`, () => {
      const empty = { role: 'assistant', content: null, reasoning_content: '' }
      assert.equal(read([chunk(empty), chunk(delta)]).output, 1)
    })
  }

  it('is finished once every choice asked for has its finish reason', () => {
    const of = (index: number, finish_reason: string | null) => ({
      choices: [{ index, delta: {}, finish_reason }],
    })
    const events = [of(0, null), of(1, 'stop'), of(1, 'stop'), of(0, 'length')]
    assert.equal(read(events, { answers: 2 }).finished, 3)
    assert.equal(read(events, { answers: 1 }).finished, 1)
  })

  it('withholds the usage chunk from a caller that did not ask for it, and reads it either way', () => {
    for (const include_usage of [false, true]) {
      const { reader, readings } = read([chunk({ content: 'Hi' }), chunk({}, 'stop'), USAGE], {
        include_usage,
      })
      assert.deepEqual(
        readings.map(({ relay }) => relay),
        [true, true, include_usage],
      )
      assert.deepEqual([reader.usage.inputTokens, reader.usage.outputTokens], [15, 78])
    }
  })

  it('relays a chunk that carries choices beside its usage, and takes the last report', () => {
    const running = (tokens: number) => ({ usage: { prompt_tokens: 9, completion_tokens: tokens } })
    const { reader, readings } = read([
      chunk({ content: 'a' }, null, running(1)),
      chunk({}, 'stop', running(2)),
    ])
    assert.deepEqual(
      readings.map(({ relay }) => relay),
      [true, true],
    )
    assert.equal(reader.usage.outputTokens, 2)
    assert.equal(read([chunk({ content: 'a' }, null, { usage: null })]).reader.usage.outputTokens, undefined)
  })

  it('amounts to nothing, a filtered answer or a refusal where that is so', () => {
    const substance = (...events: object[]) => read(events).reader.substance
    assert.equal(substance(chunk({ role: 'assistant' }), chunk({}, 'stop')), 'empty')
    assert.equal(substance(chunk({}, 'content_filter')), 'filtered')
    assert.equal(substance(chunk({ content: 'Once' }), chunk({}, 'content_filter')), 'output')
    assert.equal(substance(chunk({ refusal: 'I cannot' }), chunk({}, 'stop')), 'refusal')
  })

  it('tells an error event from output', () => {
    const error = { message: 'quota', code: 'insufficient_quota' }
    const { readings } = read([{ error }])
    assert.deepEqual([readings[0]?.error, readings[0]?.output], [error, false])
  })

  it('passes over empty data and odd choices, and throws at what is no JSON object', () => {
    const { output } = read(['', { choices: [null] }, { choices: {} }, { choices: [{ delta: null }] }, {}])
    assert.equal(output, -1)
    for (const data of ['{', 'null', '7', '"x"']) assert.throws(() => read([data]), SyntaxError)
  })
})
