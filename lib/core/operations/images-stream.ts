import { isJsonObject, isText, type JsonObject, parseJson } from '../json/index.ts'
import type { StreamEvent } from '../protocols/index.ts'
import { readImageUsage, TOKENS_PER_PARTIAL_IMAGE, tokensPerImage } from './images-answer.ts'
import {
  type FrameReading,
  newReading,
  type ReportedUsage,
  type StreamReader,
  type Substance,
} from './operation.ts'

/** Reads the stream of an OpenAI-style image endpoint: coarse forms of an image, then the image, for each one. */
export class ImageStreamReader implements StreamReader {
  readonly #asked: number
  #done = 0
  /** The tokens of the image that has coarse forms and is not done. */
  #open = 0
  #output = 0
  /** Whether each image that is done came with its tokens. */
  #isReported = true
  #input: ReportedUsage = {}
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
    if (type === 'error' || event.error) return { ...reading, error: event.error ?? event }
    reading.json = event
    if (!isText(event.b64_json) && !isText(event.url)) return reading
    if (type?.endsWith('.partial_image')) this.#begin(event)
    else if (type?.endsWith('.completed')) this.#finish(event)
    else return reading
    const isLast = this.#done >= this.#asked
    return { ...reading, output: true, finished: isLast, last: isLast }
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
    // Each image tells of the same prompt.
    if ((input.inputTokens ?? 0) >= (this.#input.inputTokens ?? 0)) this.#input = input
  }
}
