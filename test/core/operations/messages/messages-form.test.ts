import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages } from '../../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const HEAD = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
const USAGE = { input_tokens: 7, output_tokens: 3 }

/** The events of the stream that says what a message says. */
function eventsOf(message: Json): Json[] {
  const stream = messages.answerForm?.toStream(message) ?? assert.fail()
  assert.ok(stream.endsWith('\n\n'))
  return stream
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      const [name, data] = event.split('\n')
      const json: Json = JSON.parse(data?.replace(/^data: /, '') ?? '')
      assert.equal(name, `event: ${json.type}`)
      return json
    })
}
const wholeOf = (...events: Json[]) => messages.answerForm?.fromStream(events)

const start = (message: unknown) => ({ type: 'message_start', message })
const begin = (content_block: unknown, index = 0) => ({ type: 'content_block_start', index, content_block })
const delta = (type: string, members: Json, index = 0) => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...members },
})
const end = (index = 0) => ({ type: 'content_block_stop', index })

describe('a whole message, sent as a stream,', () => {
  const cited = { type: 'char_location', cited_text: 'x' }
  const rows: [what: string, block: Json, events: Json[]][] = [
    [
      'a text',
      { type: 'text', text: 'Hi' },
      [begin({ type: 'text', text: '' }), delta('text_delta', { text: 'Hi' }), end()],
    ],
    [
      'a text with what it cites',
      { type: 'text', text: 'Hi', citations: [cited, cited] },
      [
        begin({ type: 'text', text: '', citations: [] }),
        delta('text_delta', { text: 'Hi' }),
        delta('citations_delta', { citation: cited }),
        delta('citations_delta', { citation: cited }),
        end(),
      ],
    ],
    [
      'a text that cites nothing',
      { type: 'text', text: 'Hi', citations: null },
      [begin({ type: 'text', text: '', citations: null }), delta('text_delta', { text: 'Hi' }), end()],
    ],
    [
      'signed thinking',
      { type: 'thinking', thinking: 'Hm', signature: 's' },
      [
        begin({ type: 'thinking', thinking: '', signature: '' }),
        delta('thinking_delta', { thinking: 'Hm' }),
        delta('signature_delta', { signature: 's' }),
        end(),
      ],
    ],
    [
      'thinking without a signature',
      { type: 'thinking', thinking: 'Hm' },
      [
        begin({ type: 'thinking', thinking: '', signature: '' }),
        delta('thinking_delta', { thinking: 'Hm' }),
        end(),
      ],
    ],
    [
      'the use of a tool',
      { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
      [
        begin({ type: 'tool_use', id: 't', name: 'f', input: {} }),
        delta('input_json_delta', { partial_json: '{"a":1}' }),
        end(),
      ],
    ],
    [
      'any other block',
      { type: 'redacted_thinking', data: 'x' },
      [begin({ type: 'redacted_thinking', data: 'x' }), end()],
    ],
  ]
  for (const [what, block, blockEvents] of rows)
    it(`has ${what}, and is the same when it is read as a whole again`, () => {
      const message = { ...HEAD, content: [block], stop_reason: 'end_turn', stop_sequence: 'x', usage: USAGE }
      const events = eventsOf(message)
      assert.deepEqual(events, [
        start({ ...HEAD, content: [], stop_reason: null, stop_sequence: null, usage: USAGE }),
        ...blockEvents,
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: 'x' },
          usage: USAGE,
        },
        { type: 'message_stop' },
      ])
      const signed = block.type === 'thinking' ? { signature: '', ...block } : block
      assert.deepEqual(wholeOf(...events), { ...message, content: [signed] })
    })

  it('has the input of a tool that came as JSON text as the same input', () => {
    const block = { type: 'tool_use', id: 't', name: 'f' }
    const events = eventsOf({ ...HEAD, content: [{ ...block, input: '{"a":1}' }] })
    assert.deepEqual(events.slice(1, 4), [
      begin({ ...block, input: {} }),
      delta('input_json_delta', { partial_json: '{"a":1}' }),
      end(),
    ])
    assert.deepEqual(wholeOf(...events)?.content, [{ ...block, input: { a: 1 } }])
  })

  it('has its blocks by their number, and no stop reason if none is given', () => {
    const events = eventsOf({ ...HEAD, content: [{ type: 'a' }, null, { type: 'b' }] })
    assert.deepEqual(
      events.map(({ type, index }) => [type, index]),
      [
        ['message_start', undefined],
        ['content_block_start', 0],
        ['content_block_stop', 0],
        ['content_block_start', 1],
        ['content_block_stop', 1],
        ['message_delta', undefined],
        ['message_stop', undefined],
      ],
    )
    assert.deepEqual(events.at(-2), {
      type: 'message_delta',
      delta: { stop_reason: null, stop_sequence: null },
    })
  })
})

describe('a streamed message, sent as a whole,', () => {
  it('has its blocks by their number, and their pieces joined', () => {
    const text = { type: 'text', text: 'A' }
    assert.deepEqual(
      wholeOf(
        start(HEAD),
        begin(text, 0),
        begin({ type: 'text' }, 1),
        delta('text_delta', { text: 'B' }, 1),
        delta('text_delta', { text: 'b' }, 0),
        delta('text_delta', { text: 'C' }, 1),
        delta('citations_delta', { citation: 'x' }, 1),
        delta('text_delta', { text: 7 }, 0),
        delta('text_delta', { text: 'lost' }, 2),
        { type: 'content_block_delta', index: 0, delta: null },
        { type: 'content_block_start', index: 3, content_block: null },
        { type: 'content_block_delta', delta: { text: 'lost' } },
        { type: 'ping', index: 0, delta: { text: 'lost' } },
      ),
      {
        ...HEAD,
        content: [
          { type: 'text', text: 'Ab' },
          { type: 'text', text: 'BC', citations: ['x'] },
        ],
      },
    )
    assert.deepEqual(text, { type: 'text', text: 'A' })
  })

  it('has the input of a tool from all its pieces, as far as it can be parsed', () => {
    const tool = begin({ type: 'tool_use', input: { old: 1 } })
    const input = (...pieces: unknown[]) =>
      wholeOf(tool, ...pieces.map((partial_json) => delta('input_json_delta', { partial_json })))?.content
    const block = (value: unknown) => [{ type: 'tool_use', input: value }]
    assert.deepEqual(input('{"a":', '[1]}'), block({ a: [1] }))
    assert.deepEqual(input(''), block({}))
    assert.deepEqual(input('{"a"'), block({ old: 1 }))
    assert.deepEqual(input(7), block({ old: 1 }))
    assert.deepEqual(wholeOf(delta('input_json_delta', { partial_json: '{}' }))?.content, [])
  })

  it('has the first start, the last end, and the usage of both', () => {
    const over = (members: Json) => ({ type: 'message_delta', ...members })
    assert.deepEqual(
      wholeOf(
        start(null),
        start({ ...HEAD, usage: { input_tokens: 7, output_tokens: 1 } }),
        start({ id: 'other', extra: 1 }),
        over({ delta: { stop_reason: 'max_tokens' }, usage: { output_tokens: 3 } }),
        over({ usage: null }),
        over({ delta: { stop_reason: 'end_turn' } }),
      ),
      { ...HEAD, extra: 1, stop_reason: 'end_turn', usage: USAGE, content: [] },
    )
    assert.deepEqual(wholeOf(over({ usage: { output_tokens: 3 } })), {
      usage: { output_tokens: 3 },
      content: [],
    })
    assert.deepEqual(wholeOf(), { content: [] })
  })
})
