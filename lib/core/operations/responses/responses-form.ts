import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import type { AnswerForm } from '../answer-form.ts'

export const responseForm: AnswerForm = { toStream, fromStream }

function toStream(response: JsonObject): string {
  const events: JsonObject[] = []
  const begun = { ...response, status: 'in_progress', output: [], usage: null, incomplete_details: null }
  events.push(
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
  )
  objectsIn(response.output).forEach((item, output_index) => {
    const at = { output_index, item_id: item.id }
    const empty = emptied(item)
    events.push({ type: 'response.output_item.added', output_index, item: empty })
    events.push(...contentEvents(item, at))
    events.push({ type: 'response.output_item.done', output_index, item })
  })
  const end = response.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
  events.push({ type: end, response })
  return events
    .map(
      (event, sequence_number) =>
        `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`,
    )
    .join('')
}

/** Returns an item as it begins. */
function emptied(item: JsonObject): JsonObject {
  const { type } = item
  if (type === 'message') return { ...item, status: 'in_progress', content: [] }
  if (type === 'reasoning') return { ...item, summary: [] }
  if (typeof item.arguments === 'string') return { ...item, status: 'in_progress', arguments: '' }
  return item
}

function contentEvents(item: JsonObject, at: JsonObject): readonly JsonObject[] {
  if (item.type === 'message')
    return objectsIn(item.content).flatMap((part, content_index) =>
      partEvents(part, { ...at, content_index }),
    )
  if (item.type === 'reasoning') {
    return objectsIn(item.summary).flatMap((part, summary_index) => {
      const { text } = part
      const place = { ...at, summary_index }
      return [
        { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
        { type: 'response.reasoning_summary_text.delta', ...place, delta: text },
        { type: 'response.reasoning_summary_text.done', ...place, text },
        { type: 'response.reasoning_summary_part.done', ...place, part },
      ]
    })
  }
  if (typeof item.arguments !== 'string' || item.type !== 'function_call') return []
  return [
    { type: 'response.function_call_arguments.delta', ...at, delta: item.arguments },
    { type: 'response.function_call_arguments.done', ...at, arguments: item.arguments },
  ]
}

function partEvents(part: JsonObject, at: JsonObject): readonly JsonObject[] {
  const isRefusal = part.type === 'refusal'
  const member = isRefusal ? 'refusal' : 'text'
  const kind = isRefusal ? 'response.refusal' : 'response.output_text'
  return [
    { type: 'response.content_part.added', ...at, part: { ...part, [member]: '' } },
    { type: `${kind}.delta`, ...at, delta: part[member] },
    { type: `${kind}.done`, ...at, [member]: part[member] },
    { type: 'response.content_part.done', ...at, part },
  ]
}

/** The last event holds the response. Some upstreams leave its items out, which came in events of their own or before. */
function fromStream(events: readonly JsonObject[]): JsonObject {
  const responses = events.flatMap(({ response }) => (isJsonObject(response) ? [response] : []))
  const response = responses.at(-1) ?? {}
  if (Array.isArray(response.output) && response.output.length > 0) return response
  const items = events.flatMap(({ type, item }) =>
    type === 'response.output_item.done' && item ? [item] : [],
  )
  const begun = responses.findLast(({ output }) => Array.isArray(output) && output.length > 0)
  return { ...response, output: items.length > 0 || !begun ? items : begun.output }
}
