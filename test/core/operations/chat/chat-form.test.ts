import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { completions } from '../../../../lib/core/operations/chat/completions.ts'
import { chatCompletions, type Operation } from '../../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const USAGE = { prompt_tokens: 7, completion_tokens: 3 }
const DONE = 'data: [DONE]\n\n'

/** The chunks of the stream that says what an answer says. */
function chunksOf({ answerForm }: Operation, answer: Json): Json[] {
  const stream = answerForm?.toStream(answer) ?? assert.fail()
  assert.ok(stream.endsWith(DONE))
  return stream
    .slice(0, -DONE.length)
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      assert.ok(event.startsWith('data: '), event)
      return JSON.parse(event.slice('data: '.length))
    })
}
const wholeOf = ({ answerForm }: Operation, chunks: Json[]) => answerForm?.fromStream(chunks)

describe('a whole chat completion, sent as a stream,', () => {
  const head = { id: 'c', object: 'chat.completion', created: 5, model: 'm' }
  const chunk = { ...head, object: 'chat.completion.chunk' }

  it('has each choice in a chunk, then its end, then the usage', () => {
    const message = { role: 'assistant', content: 'Hi', tool_calls: [{ id: 'a' }, { id: 'b', index: 9 }] }
    const choices = [
      { index: 0, message, finish_reason: 'stop', logprobs: { content: [] } },
      { index: 1, message: { content: 'Ho' }, finish_reason: 'length' },
    ]
    const calls = [
      { index: 0, id: 'a' },
      { index: 9, id: 'b' },
    ]
    const delta = { ...message, tool_calls: calls }
    const logprobs = { content: [] }
    assert.deepEqual(chunksOf(chatCompletions, { ...head, choices, usage: USAGE }), [
      { ...chunk, choices: [{ index: 0, delta, logprobs, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { ...chunk, choices: [{ index: 1, delta: { content: 'Ho' }, logprobs: null, finish_reason: null }] },
      { ...chunk, choices: [{ index: 1, delta: {}, finish_reason: 'length' }] },
      { ...chunk, choices: [], usage: USAGE },
    ])
  })

  it('has index 0, no finish reason and no usage if none is given', () => {
    const bare = [
      { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: null }] },
    ]
    for (const message of [undefined, null, 'Hi'])
      assert.deepEqual(chunksOf(chatCompletions, { ...head, choices: [{ message }] }), bare)
    assert.deepEqual(chunksOf(chatCompletions, { ...head, choices: [null, 'x'], usage: null }), [])
  })
})

describe('a streamed chat completion, sent as a whole,', () => {
  const head = { id: 'c', object: 'chat.completion.chunk', model: 'm' }
  const of = (delta: Json, more: Json = {}) => ({ ...head, choices: [{ index: 0, delta, ...more }] })
  const whole = (...choices: Json[]) => ({ id: 'c', object: 'chat.completion', model: 'm', choices })
  const choice = (message: Json, finish_reason: string | null, index = 0) => ({
    index,
    finish_reason,
    message,
  })

  it('has the texts of each choice, joined', () => {
    const chunks = [
      of({ role: 'assistant', content: '' }),
      of({ content: 'He' }, { finish_reason: null }),
      { ...head, choices: [{ index: 1, delta: { content: 'B' } }, { delta: { content: 'llo' } }] },
      of({}, { finish_reason: 'stop' }),
      of({}, { finish_reason: null }),
    ]
    assert.deepEqual(
      wholeOf(chatCompletions, chunks),
      whole(
        choice({ role: 'assistant', content: 'Hello' }, 'stop'),
        choice({ role: 'assistant', content: 'B' }, null, 1),
      ),
    )
  })

  it('has its calls without their index', () => {
    const call = (index: number, args: string) => ({
      index,
      id: `call_${index}`,
      function: { arguments: args },
    })
    const chunks = [
      of({ tool_calls: [call(0, '{')] }),
      of({ tool_calls: [call(1, '[]'), { index: 0, function: { arguments: '}' } }] }),
    ]
    const tool_calls = [
      { id: 'call_0', function: { arguments: '{}' } },
      { id: 'call_1', function: { arguments: '[]' } },
    ]
    assert.deepEqual(
      wholeOf(chatCompletions, chunks),
      whole(choice({ role: 'assistant', content: null, tool_calls }, null)),
    )
  })

  it('has the members of the first chunk that contains them, and the last usage', () => {
    const chunks = [
      { id: 'first', choices: [], usage: { prompt_tokens: 1 } },
      { id: 'later', service_tier: 'flex', choices: [], usage: USAGE },
      { choices: [], usage: null },
    ]
    assert.deepEqual(wholeOf(chatCompletions, chunks), {
      id: 'first',
      service_tier: 'flex',
      object: 'chat.completion',
      choices: [],
      usage: USAGE,
    })
  })

  it('may have a message instead of a delta', () => {
    const chunks = [{ ...head, choices: [{ finish_reason: 'stop' }, null] }]
    assert.deepEqual(
      wholeOf(chatCompletions, chunks),
      whole(choice({ role: 'assistant', content: null }, 'stop')),
    )
    assert.deepEqual(wholeOf(chatCompletions, []), { object: 'chat.completion', choices: [] })
  })
})

describe('a text completion in the other form', () => {
  const head = { id: 'c', object: 'text_completion', model: 'm' }

  it('has each text in a chunk, then its end', () => {
    const choices = [
      { index: 1, text: 'Hi', logprobs: { tokens: [] }, finish_reason: 'stop' },
      { text: 'Ho' },
    ]
    assert.deepEqual(chunksOf(completions, { ...head, choices, usage: USAGE }), [
      { ...head, choices: [{ index: 1, text: 'Hi', logprobs: { tokens: [] }, finish_reason: null }] },
      { ...head, choices: [{ index: 1, text: '', logprobs: null, finish_reason: 'stop' }] },
      { ...head, choices: [{ text: 'Ho', finish_reason: null }] },
      { ...head, choices: [{ index: 0, text: '', logprobs: null, finish_reason: null }] },
      { ...head, choices: [], usage: USAGE },
    ])
  })

  it('has the texts joined again', () => {
    const chunks = ['Hel', 'lo'].map((text) => ({ ...head, choices: [{ index: 0, text }] }))
    const end = { ...head, choices: [{ index: 0, text: '', finish_reason: 'length' }], usage: USAGE }
    assert.deepEqual(wholeOf(completions, [...chunks, end]), {
      ...head,
      choices: [{ index: 0, finish_reason: 'length', text: 'Hello' }],
      usage: USAGE,
    })
  })
})
