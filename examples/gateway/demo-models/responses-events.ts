import { type JsonObject, objectsIn } from './prompt.ts'
import type { Rendering } from './text-endpoint.ts'

/** The members of a response that its stream needs. */
interface StreamedResponse extends Readonly<Record<string, unknown>> {
  readonly status: string
  readonly output: readonly JsonObject[]
}

/**
 * Returns the events of a response with at most one item, named and numbered.
 *
 * @param begun the response at its beginning, without output.
 * @param tokens the tokens of its item, one delta each.
 */
export function responseEvents(
  begun: StreamedResponse,
  whole: StreamedResponse,
  tokens: readonly string[],
): Pick<Rendering, 'opening' | 'closing'> {
  let number = 0
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}\n\n`

  const [item] = whole.output
  const [part] = objectsIn(item?.content)
  const place = { item_id: item?.id, output_index: 0, ...(part && { content_index: 0 }) }
  const text = part ? 'response.output_text' : 'response.function_call_arguments'
  const empty = part ? { content: [] } : { arguments: '' }

  return {
    *opening() {
      yield event('response.created', { response: begun })
      yield event('response.in_progress', { response: begun })
      if (item === undefined) return
      const started = { ...item, status: 'in_progress', ...empty }
      yield event('response.output_item.added', { output_index: 0, item: started })
      if (part) yield event('response.content_part.added', { ...place, part: { ...part, text: '' } })
      for (const delta of tokens) yield event(`${text}.delta`, { ...place, delta })
    },
    *closing() {
      if (item !== undefined) {
        const written = part ? { text: part.text } : { name: item.name, arguments: item.arguments }
        yield event(`${text}.done`, { ...place, ...written })
        if (part) yield event('response.content_part.done', { ...place, part })
        yield event('response.output_item.done', { output_index: 0, item })
      }
      yield event(`response.${whole.status}`, { response: whole })
    },
  }
}
