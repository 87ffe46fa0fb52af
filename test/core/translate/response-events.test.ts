import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesAsChat } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { chatChunk } from '../../support/scripted-upstream.ts'
import { eventsOf } from './accumulate.ts'
import { relayTranslated } from './relayed.ts'

type Event = Readonly<Record<string, unknown>>

/** The events that a caller gets of these deltas, after a look at their numbers. */
function told(request: Event, finish: string, ...deltas: object[]): Event[] {
  const stream = [...deltas.map((delta) => chatChunk(delta)), chatChunk({}, finish), 'data: [DONE]\n\n']
  const { text, end } = relayTranslated('openai', stream.join(''), { passage: responsesAsChat, request })
  assert.equal(end, 'complete')
  return eventsOf(text).map(({ sequence_number: number, ...event }, i) => {
    assert.equal(number, i)
    return event
  })
}

const ID = 'resp_chatcmpl-1'
const call = (index: number, args: string, id?: string, name?: string) => ({
  tool_calls: [{ index, ...(id && { id }), function: { ...(name && { name }), arguments: args } }],
})
/** What only reasoning that came in `reasoning` needs to find its way back. */
const sealed = (json: object) => `reasoning_details:${Buffer.from(JSON.stringify(json)).toString('base64')}`
const added = (output_index: number, item: object) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (output_index: number, item: object) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})

describe('the events of a response', () => {
  const cited = { type: 'url_citation', url: 'https://a.test/', title: 'A', start_index: 0, end_index: 2 }
  const { type, ...url_citation } = cited
  const events = told(
    {},
    'length',
    { role: 'assistant', content: '' },
    { reasoning: 'Hm' },
    { reasoning: '.' },
    { content: 'Hi' },
    { annotations: [{ type, url_citation }] },
    { refusal: 'No' },
    call(0, '{"a":', 'call_a', 'f'),
    call(1, '', 'call_b', 'g'),
    call(0, '1}'),
  )
  const within = (item: string) => events.filter((event) => event.item_id === item)
  const items = [
    {
      id: `rs_${ID}_0`,
      type: 'reasoning',
      status: 'completed',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
      encrypted_content: sealed({ details: [], member: 'reasoning' }),
    },
    {
      id: `msg_${ID}_1`,
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'Hi', annotations: [cited], logprobs: [] },
        { type: 'refusal', refusal: 'No' },
      ],
    },
    {
      id: `fc_${ID}_0`,
      type: 'function_call',
      status: 'completed',
      call_id: 'call_a',
      name: 'f',
      arguments: '{"a":1}',
    },
    {
      id: `fc_${ID}_1`,
      type: 'function_call',
      // It may have been cut off.
      status: 'incomplete',
      call_id: 'call_b',
      name: 'g',
      arguments: '{}',
    },
  ] as const

  it('begin with the response twice, without output, and end with it, whole', () => {
    const [created, running] = events
    const last = events.at(-1) ?? {}
    const shell = created?.response as Event
    assert.deepEqual([shell.id, shell.status, shell.output, shell.usage], [ID, 'in_progress', [], null])
    assert.deepEqual(created, { type: 'response.created', response: shell })
    assert.deepEqual(running, { type: 'response.in_progress', response: shell })
    assert.deepEqual(last, {
      type: 'response.incomplete',
      response: {
        ...shell,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: items,
        usage: (last.response as Event).usage,
      },
    })
  })

  it('add and end each item in its place', () => {
    const [reasoning, message, first, second] = items
    const { encrypted_content: _, ...bare } = reasoning
    const begun = { status: 'in_progress', arguments: '' }
    assert.deepEqual(
      events.filter((event) => 'item' in event),
      [
        added(0, { ...bare, status: 'in_progress', content: [] }),
        done(0, reasoning),
        added(1, { ...message, status: 'in_progress', content: [] }),
        done(1, message),
        added(2, { ...first, ...begun }),
        added(3, { ...second, ...begun }),
        done(2, first),
        done(3, second),
      ],
    )
  })

  it('tell reasoning piece by piece, then whole', () => {
    const [{ id, content }] = items
    const place = { item_id: id, output_index: 0, content_index: 0 }
    assert.deepEqual(within(id), [
      { type: 'response.content_part.added', ...place, part: { type: 'reasoning_text', text: '' } },
      { type: 'response.reasoning_text.delta', ...place, delta: 'Hm' },
      { type: 'response.reasoning_text.delta', ...place, delta: '.' },
      { type: 'response.reasoning_text.done', ...place, text: 'Hm.' },
      { type: 'response.content_part.done', ...place, part: content[0] },
    ])
  })

  it('tell a text with what it cites, and a refusal behind it', () => {
    const [, { id, content }] = items
    const [text, refusal] = content
    const [first, second] = [0, 1].map((index) => ({ item_id: id, output_index: 1, content_index: index }))
    assert.deepEqual(within(id), [
      { type: 'response.content_part.added', ...first, part: { ...text, text: '', annotations: [] } },
      { type: 'response.output_text.delta', ...first, delta: 'Hi', logprobs: [] },
      { type: 'response.output_text.annotation.added', ...first, annotation_index: 0, annotation: cited },
      { type: 'response.output_text.done', ...first, text: 'Hi', logprobs: [] },
      { type: 'response.content_part.done', ...first, part: text },
      { type: 'response.content_part.added', ...second, part: { type: 'refusal', refusal: '' } },
      { type: 'response.refusal.delta', ...second, delta: 'No' },
      { type: 'response.refusal.done', ...second, refusal: 'No' },
      { type: 'response.content_part.done', ...second, part: refusal },
    ])
  })

  it('tell the arguments of each call, empty ones too', () => {
    const [, , first, second] = items
    const [a, b] = [first, second].map(({ id }, i) => ({ item_id: id, output_index: i + 2 }))
    assert.deepEqual(within(first.id), [
      { type: 'response.function_call_arguments.delta', ...a, delta: '{"a":' },
      { type: 'response.function_call_arguments.delta', ...a, delta: '1}' },
      { type: 'response.function_call_arguments.done', ...a, name: 'f', arguments: '{"a":1}' },
    ])
    assert.deepEqual(within(second.id), [
      { type: 'response.function_call_arguments.delta', ...b, delta: '{}' },
      { type: 'response.function_call_arguments.done', ...b, name: 'g', arguments: '{}' },
    ])
  })

  it('tell a summary in events of its own, and seal what goes back', () => {
    const request = { reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] }
    const summarized = told(request, 'stop', { reasoning_content: 'Hm' }, { reasoning_content: '.' })
    const id = `rs_${ID}_0`
    const place = { item_id: id, output_index: 0, summary_index: 0 }
    const part = { type: 'summary_text', text: 'Hm.' }
    const item = { id, type: 'reasoning', status: 'completed', summary: [part] }
    const seal = sealed({ details: [], member: 'reasoning_content', text: 'Hm.' })
    assert.deepEqual(summarized.slice(2, -1), [
      added(0, { ...item, status: 'in_progress', summary: [], content: [] }),
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: 'Hm' },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: '.' },
      { type: 'response.reasoning_summary_text.done', ...place, text: 'Hm.' },
      { type: 'response.reasoning_summary_part.done', ...place, part },
      done(0, { ...item, encrypted_content: seal }),
    ])
    assert.equal(summarized.at(-1)?.type, 'response.completed')
  })

  it('open a new item, where another kind of it stood between', () => {
    const kinds = told({}, 'stop', { content: 'a' }, { reasoning_content: 'b' }, { content: 'c' })
      .filter(({ type }) => type === 'response.output_item.added')
      .map(({ item }) => (item as Event).id)
    assert.deepEqual(kinds, [`msg_${ID}_0`, `rs_${ID}_1`, `msg_${ID}_2`])
  })
})
