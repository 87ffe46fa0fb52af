import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../../lib/core/operations/index.ts'

const OUTPUT = [
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'I look it up.' }] },
  {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [
      { type: 'output_text', text: 'Sunny.', annotations: [] },
      { type: 'refusal', refusal: 'No more.' },
    ],
  },
  {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'weather',
    arguments: '{"city":"Oslo"}',
    status: 'completed',
  },
  { type: 'web_search_call', id: 'ws_1', status: 'completed' },
]
const RESPONSE = { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output: OUTPUT }

interface Event {
  readonly type: string
  readonly sequence_number: number
  readonly delta?: string
  readonly [member: string]: unknown
}

/** The events of the stream that says what the response says. */
function events(response: object): Event[] {
  const stream = responses.answerForm?.toStream({ ...response }) ?? assert.fail()
  return stream
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [name, data] = event.split('\n')
      const json: Event = JSON.parse(data?.replace(/^data: /, '') ?? '')
      assert.equal(name, `event: ${json.type}`)
      return json
    })
}

describe('a whole response, sent as a stream,', () => {
  it('has the events of each item in their order', () => {
    const item = (...types: string[]) => ['output_item.added', ...types, 'output_item.done']
    const part = (kind: string) => [
      'content_part.added',
      `${kind}.delta`,
      `${kind}.done`,
      'content_part.done',
    ]
    const summary = ['part.added', 'text.delta', 'text.done', 'part.done']
    assert.deepEqual(
      events(RESPONSE).map(({ type }) => type),
      [
        ...['created', 'in_progress'],
        ...item(...summary.map((each) => `reasoning_summary_${each}`)),
        ...item(...part('output_text'), ...part('refusal')),
        ...item('function_call_arguments.delta', 'function_call_arguments.done'),
        ...item(),
        'completed',
      ].map((type) => `response.${type}`),
    )
  })

  it('begins without its later content', () => {
    const all = events({ ...RESPONSE, usage: { input_tokens: 1 }, incomplete_details: { reason: 'x' } })
    const begun = { ...RESPONSE, status: 'in_progress', output: [], usage: null, incomplete_details: null }
    assert.deepEqual([all[0]?.response, all[1]?.response], [begun, begun])
    const added = all.filter(({ type }) => type === 'response.output_item.added').map(({ item }) => item)
    const [reasoning, message, call, search] = OUTPUT
    assert.deepEqual(added, [
      { ...reasoning, summary: [] },
      { ...message, status: 'in_progress', content: [] },
      { ...call, status: 'in_progress', arguments: '' },
      search,
    ])
    assert.equal(events({ ...RESPONSE, status: 'incomplete' }).at(-1)?.type, 'response.incomplete')
  })

  it('contains the place of each piece', () => {
    const places = events(RESPONSE)
      .filter(({ delta }) => delta !== undefined)
      .map((event) => [event.output_index, event.item_id, event.summary_index ?? event.content_index])
    assert.deepEqual(places, [
      [0, 'rs_1', 0],
      [1, 'msg_1', 0],
      [1, 'msg_1', 1],
      [2, 'fc_1', undefined],
    ])
    const done = events(RESPONSE).flatMap((event) => event.text ?? event.refusal ?? event.arguments ?? [])
    assert.deepEqual(done, ['I look it up.', 'Sunny.', 'No more.', '{"city":"Oslo"}'])
  })

  it('has its texts in deltas, and sequence numbers from 0 on', () => {
    const all = events(RESPONSE)
    assert.deepEqual(
      all.flatMap(({ delta }) => delta ?? []),
      ['I look it up.', 'Sunny.', 'No more.', '{"city":"Oslo"}'],
    )
    assert.deepEqual(
      all.map((event) => event.sequence_number),
      [...all.keys()],
    )
  })

  it('is the same response when it is read as a whole again', () => {
    const all = events(RESPONSE).map((event) => ({ ...event }))
    assert.deepEqual(responses.answerForm?.fromStream(all), RESPONSE)
    // Some upstreams leave the items out of the last event.
    const bare = all.map((event) =>
      'response' in event ? { ...event, response: { ...RESPONSE, output: [] } } : event,
    )
    assert.deepEqual(responses.answerForm?.fromStream(bare), RESPONSE)
  })
})
