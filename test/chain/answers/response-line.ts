import type { Content, Shape, StopReason } from './content-forms.ts'
import { halves, INPUT_TOKENS, OUTPUT_TOKENS } from './content-forms.ts'

const HEAD = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'upstream-model',
  store: false,
  error: null,
}
const usage = { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS, total_tokens: 10 }

type Item = { readonly type: string; readonly id: string; readonly [member: string]: unknown }

function itemsOf({
  reasoning,
  sealed,
  text,
  refusal,
  unknown,
  moreText,
  calls = [],
}: Content): readonly Item[] {
  const message = (id: string, part: object) => ({
    id,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [part],
  })
  const output = (said: string) => ({ type: 'output_text', text: said, annotations: [], logprobs: [] })
  return [
    ...(reasoning === undefined
      ? []
      : [{ id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: reasoning }] }]),
    ...(sealed ? [{ id: 'rs_2', type: 'reasoning', summary: [], encrypted_content: 'c2VhbGVk' }] : []),
    ...(text === undefined ? [] : [message('msg_1', output(text))]),
    ...(unknown ? [{ id: 'my_1', type: 'mystery', riddle: { answer: 42 } }] : []),
    ...(moreText === undefined ? [] : [message('msg_2', output(moreText))]),
    ...(refusal === undefined ? [] : [message('msg_3', { type: 'refusal', refusal })]),
    ...calls.map(({ id, name, input = {} }) => ({
      id: `fc_${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: id,
      name,
      arguments: JSON.stringify(input),
    })),
  ]
}

const endOf = (reason: StopReason) =>
  reason === 'completed'
    ? { status: 'completed', incomplete_details: null }
    : { status: 'incomplete', incomplete_details: { reason } }

/** A whole response; its reason is `completed`, or why it is incomplete. */
export const responsePlain = (content: Content, reason: StopReason): object => ({
  ...HEAD,
  ...endOf(reason),
  output: itemsOf(content),
  usage,
})

/** The data of all events of a streamed response. */
export function responseStreamed(content: Content, reason: StopReason, shape: Shape): readonly string[] {
  const begun = { ...HEAD, status: 'in_progress', incomplete_details: null, output: [], usage: null }
  const response = responsePlain(content, reason)
  const { status } = endOf(reason)
  const items = shape === 'last event' ? [] : itemsOf(content)
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...items.flatMap((item, index) => itemEvents(item, index, shape)),
    { type: `response.${status}`, response },
  ]
  return events.map((event, sequence_number) => JSON.stringify({ ...event, sequence_number }))
}

function itemEvents(item: Item, output_index: number, shape: Shape): readonly object[] {
  const done = { type: 'response.output_item.done', output_index, item }
  const added = (begun: object) => ({ type: 'response.output_item.added', output_index, item: begun })
  if (shape === 'first event') return [added(item)]
  const at = { output_index, item_id: item.id }
  const deltas = (type: string, text: unknown) =>
    halves(String(text)).map((delta) => ({ type: `response.${type}.delta`, ...at, delta }))
  switch (item.type) {
    case 'message': {
      const [part] = item.content as [{ text?: string; refusal?: string }]
      return [
        added({ ...item, status: 'in_progress', content: [] }),
        ...(part.refusal === undefined ? deltas('output_text', part.text) : deltas('refusal', part.refusal)),
        done,
      ]
    }
    case 'reasoning': {
      const [part] = item.summary as [{ text: string }?]
      return [
        added({ ...item, summary: [] }),
        ...(part ? deltas('reasoning_summary_text', part.text) : []),
        done,
      ]
    }
    case 'function_call':
      return [added({ ...item, arguments: '' }), ...deltas('function_call_arguments', item.arguments), done]
    default:
      return [added(item), { type: 'response.mystery.happened', ...at, clue: 7 }, done]
  }
}
