import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { ChatChunkReader, type ChatEventWriter } from '../chat-chunk-reader.ts'
import { FreeformReader } from '../freeform-tools.ts'
import type { ReasoningMember } from '../reasoning.ts'
import type { AnswerContext, StreamTranslator, TranslatedUsage } from '../translation.ts'
import {
  callItem,
  callItemId,
  type EndStatus,
  EVENT_NAMES,
  endedResponse,
  endStatus,
  includesSources,
  type PartType,
  partOf,
  type ReasoningForm,
  reasoningForm,
  reasoningParts,
  responseId,
  responseShell,
  webSearchItem,
} from './answer.ts'
import { encodeReasoning } from './reasoning.ts'
import { type CallersTool, callersTools } from './tools.ts'

/** Keeps the caller's connection alive. */
const COMMENT = ': ping\n\n'

/** Translates OpenAI-style chat completion chunks into the stream of a response. */
export class ChatAsResponseStream implements StreamTranslator, ChatEventWriter<CallItem> {
  readonly #context: AnswerContext
  readonly #chunks: ChatChunkReader<CallItem>
  #shell: JsonObject = {}
  #items: OutputItems
  #tools: ReadonlyMap<unknown, CallersTool> | undefined
  /** Never set: events are numbered, so that no two are alike. */
  readonly textMember = undefined

  constructor(context: AnswerContext) {
    this.#context = context
    const id = responseId(undefined, context.created)
    this.#items = new OutputItems(id, reasoningForm(context.request))
    this.#chunks = new ChatChunkReader(this, id, context.request)
  }

  get skipped(): number {
    return this.#chunks.skipped
  }

  get nextEventNumber(): number {
    return this.#items.nextEventNumber
  }

  push(json: object | undefined): string {
    if (isJsonObject(json)) return this.#chunks.push(json)
    return this.#chunks.begun ? COMMENT : ''
  }

  copied(): void {}

  end(usage: TranslatedUsage): string {
    const { lastChoice, reasoningTokens } = this.#chunks
    const finishReason = lastChoice.finish_reason
    const events = this.#chunks.begin() + this.#items.end(endStatus(finishReason))
    const counts = { ...usage, reasoningTokens }
    const response = endedResponse(this.#shell, this.#items.output, finishReason, counts)
    return events + this.#items.event(`response.${response.status}`, { response })
  }

  begin(chunk: JsonObject): string {
    this.#shell = responseShell(chunk, this.#context)
    const id = responseId(chunk.id, this.#context.created)
    this.#items = new OutputItems(id, reasoningForm(this.#context.request))
    const response = this.#shell
    const created = this.#items.event('response.created', { response })
    return created + this.#items.event('response.in_progress', { response })
  }

  reasoning(text: string, member: ReasoningMember): string {
    return this.#items.reasoning(text, member)
  }

  text(text: string): string {
    return this.#items.text('output_text', text)
  }

  refusal(text: string): string {
    return this.#items.text('refusal', text)
  }

  reasoningDetail(detail: JsonObject): string {
    return this.#items.reasoningDetail(detail)
  }

  citation(cited: JsonObject): string | undefined {
    if (nonEmptyString(cited.url) === undefined) return undefined
    return this.#items.annotate({ type: 'url_citation', ...cited })
  }

  webSearch(search: JsonObject): string {
    return this.#items.webSearch(search, includesSources(this.#context.request))
  }

  newToolCall(id: string, name: string): CallItem {
    this.#tools ??= callersTools(this.#context.request)
    return this.#items.newToolCall(id, this.#tools.get(name) ?? { called: { name }, isFreeform: false })
  }

  toolArguments(call: CallItem, text: string): string {
    return this.#items.toolArguments(call, text)
  }
}

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

/** A tool call that has begun and not ended; there can be several at a time. */
interface CallItem extends CallersTool {
  readonly id: string
  readonly callId: string
  /** Reads the input of a freeform tool; undefined for a function. */
  readonly reader: FreeformReader | undefined
  index: number
  /** The arguments so far, or the input of a freeform tool. */
  text: string
}

/** The names of the events of a call's text, and of the member in the last of them. */
const CALL_EVENTS = {
  function: { text: 'function_call_arguments', member: 'arguments' },
  freeform: { text: 'custom_tool_call_input', member: 'input' },
}

const eventsOf = ({ isFreeform }: CallItem) => CALL_EVENTS[isFreeform ? 'freeform' : 'function']

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

  newToolCall(callId: string, tool: CallersTool): CallItem {
    const id = callItemId(this.#responseId, this.#calls.length, tool.isFreeform)
    const reader = tool.isFreeform ? new FreeformReader() : undefined
    const call: CallItem = { ...tool, id, callId, reader, index: -1, text: '' }
    this.#calls.push(call)
    return call
  }

  toolArguments(call: CallItem, piece: string): string {
    let events = ''
    if (call.index < 0) {
      events += this.#closeItem()
      call.index = this.#nextIndex()
      events += this.#added(call.index, callItem(call, call.id, 'in_progress'))
    }
    return events + this.#callText(call, call.reader ? call.reader.push(piece) : piece)
  }

  #callText(call: CallItem, text: string): string {
    if (text === '') return ''
    call.text += text
    const location = { item_id: call.id, output_index: call.index }
    return this.event(`response.${eventsOf(call).text}.delta`, { ...location, delta: text })
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
      if (call.text === '') events += this.toolArguments(call, call.reader ? '' : '{}')
      if (call.reader) events += this.#callText(call, call.reader.end())
      const { text, member } = eventsOf(call)
      const location = { item_id: call.id, output_index: call.index }
      const done = { ...location, ...(!call.reader && { name: call.called.name }), [member]: call.text }
      events += this.event(`response.${text}.done`, done)
      events += this.#done(call.index, callItem(call, call.id, call.index === last ? status : 'completed'))
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
