import {
  messageItem,
  numbered,
  type ResponseBody,
  responseBody,
} from '../../../support/responses-upstream.ts'
import type { Item, ResponsesRequest } from './responses-request.ts'
import { piecesOf, type Said, sealOf, type Usage } from './script.ts'

/** A response whose items are named by `made`, the number of responses before it. */
export function response(
  { thought, text, calls }: Said,
  made: number,
  { input, output }: Usage,
  { model, store, include, reasoning, previous_response_id: previous = null }: ResponsesRequest,
): ResponseBody & { readonly output: readonly Item[] } {
  const id = `rs_${made}`
  const thinking = thought !== undefined && {
    id,
    type: 'reasoning' as const,
    summary: reasoning?.summary ? [{ type: 'summary_text' as const, text: thought }] : [],
    ...(include?.includes('reasoning.encrypted_content') && { encrypted_content: sealOf(id) }),
  }
  const items = [
    thinking,
    text !== '' && messageItem(text, `msg_${made}`),
    ...calls.map(({ name, args }, i) => ({
      id: `fc_${made}_${i}`,
      type: 'function_call' as const,
      status: 'completed' as const,
      call_id: `call_${made}_${i}`,
      name,
      arguments: JSON.stringify(args),
    })),
  ].filter((item) => item !== false) as Item[]
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: thinking ? 5 : 0 },
    total_tokens: input + output,
  }
  const extra = { id: `resp_${made}`, model, store: store ?? true, previous_response_id: previous, usage }
  return { ...responseBody(items, extra), output: items }
}

/** The events of one. */
export function responseEvents(whole: ReturnType<typeof response>): string[] {
  const begun = { ...whole, status: 'in_progress', output: [], usage: null }
  return numbered([
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...whole.output.flatMap((item, output_index) => itemEvents(item, output_index)),
    { type: 'response.completed', response: whole },
  ])
}

type Event = { type: string } & Readonly<Record<string, unknown>>

function itemEvents(item: Item, output_index: number): Event[] {
  const at = { item_id: item.id, output_index }
  const around = (empty: object, events: Event[]): Event[] => [
    { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress', ...empty } },
    ...events,
    { type: 'response.output_item.done', output_index, item },
  ]
  if (item.type === 'function_call') {
    const deltas = piecesOf(item.arguments).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      ...at,
      delta,
    }))
    const done = {
      type: 'response.function_call_arguments.done',
      ...at,
      name: item.name,
      arguments: item.arguments,
    }
    return around({ arguments: '' }, [...deltas, done])
  }
  if (item.type === 'reasoning')
    return around(
      { summary: [] },
      item.summary.flatMap((part, summary_index) => {
        const place = { ...at, summary_index }
        return [
          { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
          ...piecesOf(part.text).map((delta) => ({
            type: 'response.reasoning_summary_text.delta',
            ...place,
            delta,
          })),
          { type: 'response.reasoning_summary_text.done', ...place, text: part.text },
          { type: 'response.reasoning_summary_part.done', ...place, part },
        ]
      }),
    )
  const { content } = item as unknown as { content: [{ text: string }] }
  const place = { ...at, content_index: 0 }
  const [part] = content
  return around({ content: [] }, [
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    ...piecesOf(part.text).map((delta) => ({
      type: 'response.output_text.delta',
      ...place,
      delta,
      logprobs: [],
    })),
    { type: 'response.output_text.done', ...place, text: part.text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part },
  ])
}
