import { isJsonObject, isText, type JsonObject, parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import {
  type FrameReading,
  newReading,
  type ReportedUsage,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import { readImageUsage, TOKENS_PER_PARTIAL_IMAGE, tokensPerImage } from './images-answer.ts'

/**
 * Reads the stream of an OpenAI-style image endpoint: coarse forms of an image, then the image, for each one. Ark sends a
 * series instead: an event for each image that was made or not, then one without an image, with the usage of all.
 */
export class ImageStreamReader implements StreamReader {
  readonly #asked: number
  #done = 0
  /** The tokens of the image that has coarse forms and is not done. */
  #open = 0
  #output = 0
  /** Whether each image that is done came with its tokens. */
  #isReported = true
  #input: ReportedUsage = {}
  /** Why the last image of a series that failed was not made. */
  #failure: unknown
  readonly unreportedOutput = 0

  /** @param asked how many images were asked for. */
  constructor(asked: number) {
    this.#asked = asked
  }

  get whole(): boolean {
    return this.#done > 0 && this.#open === 0
  }

  get substance(): Substance {
    return this.#done + this.#open > 0 ? 'output' : 'empty'
  }

  get estimatedOutput(): number {
    return this.#output + this.#open
  }

  get usage(): ReportedUsage {
    const isReported = this.#isReported && this.whole
    const images = this.#done + (this.#open > 0 ? 1 : 0)
    return { ...this.#input, outputTokens: isReported ? this.#output : undefined, images }
  }

  /** There is no text to count. */
  countText(): void {}

  read({ event: name, data }: StreamEvent): FrameReading {
    const reading = newReading()
    if (data === '') return reading
    if (data.trim() === '[DONE]') return { ...reading, last: true }
    const event = parseJson(data)
    if (!isJsonObject(event)) throw new SyntaxError('a stream event is not an object')
    const type = typeof event.type === 'string' ? event.type : name
    if (type?.endsWith('.partial_failed')) {
      this.#failure = event.error ?? event
      return { ...reading, json: event }
    }
    if (type === 'error' || event.error) return { ...reading, error: event.error ?? event }
    reading.json = event
    if (type?.endsWith('.completed') && event.b64_json === undefined && event.url === undefined)
      return this.#endSeries(event, reading)
    if (!isText(event.b64_json) && !isText(event.url)) return reading
    if (type?.endsWith('.partial_image')) this.#begin(event)
    else if (type?.endsWith('.completed')) this.#finish(event)
    else if (type?.endsWith('.partial_succeeded')) {
      this.#finish(event)
      return { ...reading, output: true }
    } else return reading
    const isLast = this.#done >= this.#asked
    return { ...reading, output: true, finished: isLast, last: isLast }
  }

  #endSeries({ usage }: JsonObject, reading: FrameReading): FrameReading {
    if (this.#done === 0) return this.#failure === undefined ? reading : { ...reading, error: this.#failure }
    const { outputTokens, images: _, ...input } = readImageUsage(usage)
    this.#isReported = outputTokens !== undefined
    this.#output = outputTokens ?? this.#output
    this.#input = input
    return { ...reading, output: true, finished: true, last: true }
  }

  /** Image and coarse forms are paid from the first coarse form on. */
  #begin(event: JsonObject): void {
    if (this.#open === 0) this.#open = tokensPerImage(event)
    this.#open += TOKENS_PER_PARTIAL_IMAGE
  }

  #finish(event: JsonObject): void {
    const { outputTokens, images: _, ...input } = readImageUsage(event.usage)
    if (outputTokens === undefined) this.#isReported = false
    this.#output += outputTokens ?? (this.#open || tokensPerImage(event))
    this.#open = 0
    this.#done++
    // Each image reports the same prompt.
    if ((input.inputTokens ?? 0) >= (this.#input.inputTokens ?? 0)) this.#input = input
  }
}
