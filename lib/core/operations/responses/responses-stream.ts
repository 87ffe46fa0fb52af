import { objectsIn, parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import type { FinishReason } from '../finish-reasons.ts'
import { TOKENS_PER_PARTIAL_IMAGE, tokensPerImage } from '../images/images-answer.ts'
import { countRawText, countText, SpeechCount } from '../metering/output-tokens.ts'
import { estimateTokens, jsonText } from '../metering/token-estimate.ts'
import { isChargedSearch } from '../metering/web-searches.ts'
import {
  type FrameReading,
  newReading,
  type ReportedUsage,
  type ResourceName,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import {
  endsWithoutOutput,
  errorOf,
  isId,
  isReasoning,
  itemHasOutput,
  itemRefuses,
  itemText,
  itemTokens,
  keptOfItem,
  type OutputItem,
  outlivesAnswer,
  type ResponseObject,
  readResponseUsage,
  responseFinishReason,
  stoppedByModeration,
} from './responses-answer.ts'

/** The members of a stream event that are read. */
interface ResponseEvent {
  readonly type?: unknown
  readonly sequence_number?: unknown
  readonly output_index?: unknown
  readonly response?: ResponseObject | null
  readonly item?: OutputItem | null
  readonly delta?: unknown
  readonly partial_image_b64?: unknown
  readonly error?: unknown
}

export class ResponseStreamReader implements StreamReader {
  #output = false
  #refused = false
  #filtered = false
  #speech: SpeechCount | undefined
  #ended = false
  #explained = false
  #reasoned = false
  readonly #request: Readonly<Record<string, unknown>>
  /** The tokens counted for each output item, by its index. */
  readonly #counted = new Map<unknown, number>()
  /** The ids of the response, and of the items that came in events of their own. */
  readonly #seen = new Set<unknown>()
  /** The web searches that have ended, by the id or else the index of their items. */
  readonly #searches = new Set<unknown>()
  usage: ReportedUsage = {}
  finishReason: FinishReason | undefined
  estimatedOutput = 0
  unreportedOutput = 0
  readonly #made: ResourceName[] = []
  #stored = true
  nextEventNumber = 0

  /** @param request the caller's body. */
  constructor(request: Readonly<Record<string, unknown>> = {}) {
    this.#request = request
  }

  get whole(): boolean {
    return this.#ended
  }

  get kept(): readonly ResourceName[] {
    return this.#stored ? this.#made : this.#made.filter(outlivesAnswer)
  }

  get substance(): Substance {
    if (this.#refused) return 'refusal'
    if (this.#output) return 'output'
    if (this.#filtered) return 'filtered'
    return this.#explained || (this.#ended && this.#reasoned) ? 'no_output' : 'empty'
  }

  read({ event: name, data }: StreamEvent): FrameReading {
    const reading = newReading()
    if (data === '') return reading
    if (data.trim() === '[DONE]') return { ...reading, last: true }
    const event = parseJson(data) as ResponseEvent | null
    if (typeof event !== 'object' || event === null) throw new SyntaxError('a stream event is not an object')
    const type = typeof event.type === 'string' ? event.type : name
    // Some upstreams put the error into the event, some into a member, some without a type.
    if (type === 'error' || (type === undefined && event.error))
      return { ...reading, error: event.error ?? event }
    if (event.response) this.#noteResponse(event.response)
    switch (type) {
      case 'response.failed':
      case 'response.cancelled':
        return { ...reading, error: errorOf({ status: 'failed', error: event.response?.error }) }
      case 'response.completed':
      case 'response.incomplete': {
        const error = errorOf(event.response ?? {})
        if (error !== undefined) {
          this.finishReason = 'error'
          return { ...reading, error }
        }
        this.#end(event.response ?? {})
        return { ...reading, output: this.#output, finished: true, last: true }
      }
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        reading.output = this.#beginAll(event.response ?? {})
        break
      case 'response.output_item.added':
        reading.output = this.#begin(event)
        break
      case 'response.output_item.done':
        reading.output = this.#finishItem(event)
        break
      case 'response.image_generation_call.partial_image':
        reading.output = typeof event.partial_image_b64 === 'string'
        if (reading.output) this.#draw(event)
        break
      default:
        reading.output = this.#delta(type, event)
    }
    this.#output ||= reading.output
    this.#number(event.sequence_number)
    return reading
  }

  #noteResponse({ id, store }: ResponseObject): void {
    if (store === false) this.#stored = false
    if (!isId(id) || this.#seen.has(id)) return
    this.#seen.add(id)
    this.#made.push({ kind: 'response', id })
  }

  countText(delta: string): void {
    this.#count(undefined, countRawText(delta))
  }

  /**
   * Reads the beginning of an item. A tool call is output from its first event on, a message or reasoning once it has text,
   * which some upstreams send with the first event.
   */
  #begin({ item, output_index: index }: ResponseEvent): boolean {
    if (!item) return false
    this.#see(item)
    const text = itemText(item)
    const counted = this.#counted.get(index) ?? 0
    if (text !== '') this.#count(index, Math.max(0, estimateTokens(text) - counted))
    this.#refused ||= itemRefuses(item)
    return item.type === 'message' || isReasoning(item) ? text !== '' : itemHasOutput(item)
  }

  /** Reads the items that a response has at its beginning. Returns whether there is output. */
  #beginAll({ output }: ResponseObject): boolean {
    let hasOutput = false
    for (const [index, item] of objectsIn(output).entries()) {
      hasOutput = this.#begin({ item, output_index: index }) || hasOutput
      this.#countSearch(index, item)
    }
    return hasOutput
  }

  /** Reads the end of an item. Some upstreams send an item, or parts of it, only at its end. */
  #finishItem({ item, output_index: index }: ResponseEvent): boolean {
    if (!item) return false
    this.#see(item)
    this.#countSearch(index, item)
    this.#countRest(index, item)
    this.#refused ||= itemRefuses(item)
    return itemHasOutput(item)
  }

  #see(item: OutputItem): void {
    this.#reasoned ||= isReasoning(item)
    if (this.#seen.has(item.id)) return
    this.#seen.add(item.id)
    this.#made.push(...keptOfItem(item))
  }

  /** Counts a delta. Each kind of text has its own event type, such as `response.function_call_arguments.delta`. */
  #delta(type: string | undefined, { delta: given, output_index: index }: ResponseEvent): boolean {
    const delta = jsonText(given)
    if (delta === '' || !type?.endsWith('.delta')) return false
    this.#refused ||= type === 'response.refusal.delta'
    if (/audio(?:[._]transcript)?\.delta$/.test(type)) this.#hear(index, type, delta)
    else this.#count(index, countText(delta))
    return true
  }

  #hear(index: unknown, type: string, delta: string): void {
    this.#speech ??= new SpeechCount(countText)
    this.#count(
      index,
      this.#speech.add(type.includes('transcript') ? { transcript: delta } : { data: delta }),
    )
  }

  get estimatedAudio(): number {
    return this.#speech?.tokens ?? 0
  }

  /** An image costs as much at its first, coarse form as when it is done; each coarse form costs a little more. */
  #draw(event: ResponseEvent): void {
    const { output_index: index } = event
    if (!this.#counted.has(index)) this.#count(index, tokensPerImage({ ...event }))
    this.#count(index, TOKENS_PER_PARTIAL_IMAGE)
  }

  #end(response: ResponseObject): void {
    for (const [index, item] of objectsIn(response.output).entries()) {
      if (item.id === undefined || !this.#seen.has(item.id)) this.#countRest(index, item)
      this.#see(item)
      this.#countSearch(index, item)
      this.#output ||= itemHasOutput(item)
      this.#refused ||= itemRefuses(item)
    }
    this.#filtered = stoppedByModeration(response)
    this.finishReason = responseFinishReason(response)
    this.#explained = endsWithoutOutput(response, this.#request)
    this.#ended = true
    this.usage = readResponseUsage(response, this.#searches.size)
    if (this.usage.outputTokens !== undefined) this.unreportedOutput = 0
  }

  #countSearch(index: unknown, item: OutputItem): void {
    if (!isChargedSearch(item)) return
    this.#searches.add(item.id ?? index)
    this.usage = { ...this.usage, webSearches: this.#searches.size }
  }

  /** Counts an item for which nothing was counted before, and what a summary of reasoning does not show of it. */
  #countRest(index: unknown, item: OutputItem): void {
    const counted = this.#counted.get(index)
    if (counted === undefined) this.#count(index, itemTokens(item))
    else if (isReasoning(item)) this.#count(index, Math.max(0, itemTokens(item) - counted))
  }

  #count(index: unknown, tokens: number): void {
    this.#counted.set(index, (this.#counted.get(index) ?? 0) + tokens)
    this.estimatedOutput += tokens
    this.unreportedOutput += tokens
  }

  #number(sequenceNumber: unknown): void {
    this.nextEventNumber = Number.isSafeInteger(sequenceNumber)
      ? (sequenceNumber as number) + 1
      : this.nextEventNumber + 1
  }
}
