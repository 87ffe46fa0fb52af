import type { JsonObject } from '../../json/index.ts'
import type { ReasoningMember } from '../parts/reasoning-details.ts'
import { encodeReasoning } from './encrypted-content.ts'
import { EVENT_NAMES, type PartType, partOf, type ReasoningForm, reasoningParts } from './text-parts.ts'
import { webSearchItem } from './web-search-item.ts'

/** Each item costs far more than the few bytes of a line's stream that can begin it. */
const MAX_ITEMS = 10_000

/** A message or reasoning item that has begun and not ended. */
interface TextItem {
  readonly type: 'message' | 'reasoning'
  readonly id: string
  readonly index: number
  /** Parts of the content, or of the summary. */
  readonly content: JsonObject[]
  readonly details: JsonObject[]
  member: ReasoningMember
}

/** A content part that has begun and not ended. */
interface OpenPart {
  readonly type: PartType
  readonly location: JsonObject
  text: string
  readonly annotations: JsonObject[]
}

/** The status at the end. A response that was cut off is incomplete, and so is its last item. */
export type EndStatus = 'completed' | 'incomplete'

/** A tool call that has begun and not ended; there can be several at a time. */
export interface CallItem {
  readonly id: string
  readonly callId: string
  readonly name: unknown
  readonly namespace?: unknown
  index: number
  arguments: string
}

/**
 * Writes the items of a response as events. It stores all texts, because the protocol repeats each text and each item at
 * its end, and all items in the last event.
 */
export class OutputItems {
  readonly #responseId: string
  readonly #reasoning: ReasoningForm
  readonly #output: JsonObject[] = []
  readonly #calls: CallItem[] = []
  #nextEventNumber = 0
  #items = 0
  #open: TextItem | undefined
  #part: OpenPart | undefined
  /** The length of the parts of text that have ended, in UTF-16 units. */
  #endedUnits = 0

  constructor(responseId: string, reasoning: ReasoningForm) {
    this.#responseId = responseId
    this.#reasoning = reasoning
  }

  get output(): readonly JsonObject[] {
    return this.#output
  }

  get nextEventNumber(): number {
    return this.#nextEventNumber
  }

  event(type: string, members: JsonObject): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#nextEventNumber++, ...members })}\n\n`
  }

  text(type: PartType, text: string): string {
    const begun =
      this.#openItem(type === this.#reasoning.part ? 'reasoning' : 'message') + this.#openPart(type)
    const part = this.#part as OpenPart
    part.text += text
    const logprobs = type === 'output_text' ? { logprobs: [] } : {}
    return (
      begun +
      this.event(`response.${EVENT_NAMES[type].text}.delta`, { ...part.location, delta: text, ...logprobs })
    )
  }

  reasoning(text: string, member: ReasoningMember): string {
    const events = this.text(this.#reasoning.part, text)
    if (this.#open) this.#open.member = member
    return events
  }

  /** Stores an entry of `reasoning_details` with the reasoning item. */
  reasoningDetail(detail: JsonObject): string {
    const begun = this.#openItem('reasoning')
    this.#open?.details.push(detail)
    return begun
  }

  /**
   * Adds an annotation to the open text; returns undefined if there is none.
   *
   * @param cited an annotation of a chat, whose places are those in all of its text.
   */
  annotate(cited: JsonObject): string | undefined {
    const part = this.#part
    if (part?.type !== 'output_text') return undefined
    const annotation = { ...cited, ...this.#placesInPart(cited) }
    const index = part.annotations.push(annotation) - 1
    const members = { ...part.location, annotation_index: index, annotation }
    return this.event('response.output_text.annotation.added', members)
  }

  #placesInPart({ start_index: start, end_index: end }: JsonObject): JsonObject {
    const placeOf = (index: number): number => Math.max(0, index - this.#endedUnits)
    return {
      ...(typeof start === 'number' && { start_index: placeOf(start) }),
      ...(typeof end === 'number' && { end_index: placeOf(end) }),
    }
  }

  /** Writes the item of a web search, which is over. */
  webSearch(search: JsonObject, withSources: boolean): string {
    const closed = this.#closeItem()
    const index = this.#nextIndex()
    const item = webSearchItem(search, `ws_${this.#responseId}_${index}`, withSources)
    const location = { item_id: item.id, output_index: index }
    return (
      closed +
      this.#added(index, { ...item, status: 'in_progress' }) +
      this.event('response.web_search_call.in_progress', location) +
      this.event('response.web_search_call.searching', location) +
      this.event('response.web_search_call.completed', location) +
      this.#done(index, item)
    )
  }

  newToolCall(callId: string, called: Pick<CallItem, 'name' | 'namespace'>): CallItem {
    const id = `fc_${this.#responseId}_${this.#calls.length}`
    const call: CallItem = { id, callId, ...called, index: -1, arguments: '' }
    this.#calls.push(call)
    return call
  }

  toolArguments(call: CallItem, text: string): string {
    let events = ''
    if (call.index < 0) {
      events += this.#closeItem()
      call.index = this.#nextIndex()
      events += this.#added(call.index, callItem(call, 'in_progress'))
    }
    if (text === '') return events
    call.arguments += text
    const location = { item_id: call.id, output_index: call.index }
    return events + this.event('response.function_call_arguments.delta', { ...location, delta: text })
  }

  /**
   * Ends all items.
   *
   * @param status the status of the response, which the last item has too.
   */
  end(status: EndStatus): string {
    const last = this.#items - 1
    let events = this.#closeItem(status)
    for (const call of this.#calls) {
      // The arguments of a call without any are an empty object.
      if (call.arguments === '') events += this.toolArguments(call, '{}')
      const location = { item_id: call.id, output_index: call.index }
      const { name, arguments: args } = call
      events += this.event('response.function_call_arguments.done', { ...location, name, arguments: args })
      events += this.#done(call.index, callItem(call, call.index === last ? status : 'completed'))
    }
    return events
  }

  /** @throws RangeError if there are too many items. */
  #nextIndex(): number {
    if (this.#items === MAX_ITEMS) throw new RangeError(`the answer has more than ${MAX_ITEMS} items`)
    return this.#items++
  }

  #openItem(type: TextItem['type']): string {
    if (this.#open?.type === type) return ''
    const closed = this.#closeItem()
    const index = this.#nextIndex()
    const prefix = type === 'message' ? 'msg' : 'rs'
    this.#open = {
      type,
      id: `${prefix}_${this.#responseId}_${index}`,
      index,
      content: [],
      details: [],
      member: 'reasoning_content',
    }
    return closed + this.#added(index, textItem(this.#open, 'in_progress', false))
  }

  #openPart(type: PartType): string {
    if (this.#part?.type === type) return ''
    const closed = this.#closePart()
    const { id, index, content } = this.#open as TextItem
    const names = EVENT_NAMES[type]
    const location = { item_id: id, output_index: index, [names.index]: content.length }
    this.#part = { type, location, text: '', annotations: [] }
    const part = partOf(type, '', [])
    return closed + this.event(`response.${names.part}.added`, { ...location, part })
  }

  #closePart(): string {
    const part = this.#part
    if (!part) return ''
    this.#part = undefined
    const { type, location } = part
    if (type === 'output_text') this.#endedUnits += part.text.length
    const whole = partOf(type, part.text, part.annotations)
    this.#open?.content.push(whole)
    const { annotations: _, type: __, ...text } = whole
    const names = EVENT_NAMES[type]
    return (
      this.event(`response.${names.text}.done`, { ...location, ...text }) +
      this.event(`response.${names.part}.done`, { ...location, part: whole })
    )
  }

  #closeItem(status: EndStatus = 'completed'): string {
    const closed = this.#closePart()
    const item = this.#open
    this.#open = undefined
    return item ? closed + this.#done(item.index, textItem(item, status, this.#reasoning.isSealed)) : closed
  }

  #added(index: number, item: JsonObject): string {
    return this.event('response.output_item.added', { output_index: index, item })
  }

  #done(index: number, item: JsonObject): string {
    this.#output[index] = item
    return this.event('response.output_item.done', { output_index: index, item })
  }
}

function textItem(
  { type, id, content, details, member }: TextItem,
  status: string,
  isSealed: boolean,
): JsonObject {
  if (type === 'message') return { id, type, status, role: 'assistant', content: [...content] }
  const text = isSealed ? content.map((part) => part.text).join('') : ''
  return { id, type, status, ...reasoningParts(content), ...encodeReasoning({ details, member, text }) }
}

function callItem({ id, callId, name, namespace, arguments: args }: CallItem, status: string): JsonObject {
  const called = { name, ...(namespace !== undefined && { namespace }) }
  return { id, type: 'function_call', status, call_id: callId, ...called, arguments: args }
}
