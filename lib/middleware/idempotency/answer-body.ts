import { StringDecoder } from 'node:string_decoder'
import type { AnswerBytes } from '../../core/call/index.ts'

/**
 * What a call has answered, kept by reference while it goes out and read as text only at the end: neither copies a
 * large answer nor slows a stream.
 */
export class AnswerBody {
  readonly #limit: number
  #chunks: (Uint8Array | string)[] = []
  #bytes = 0
  #cut = false
  #hasUnsent = false
  #isDiscarded = false

  /** @param limit most bytes kept. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get empty(): boolean {
    return this.#bytes === 0
  }

  /** Takes what `write` or `end` was given. */
  addSent(chunk: unknown, encoding?: unknown): void {
    // Behind what was not sent comes no more of the answer, only an error about it.
    if (this.#hasUnsent) return
    if (typeof chunk === 'string') this.#addText(chunk, encoding)
    else if (chunk instanceof Uint8Array) this.#add(chunk, chunk.byteLength)
  }

  /** Takes what belongs to the answer and is not sent. */
  addUnsent(output: AnswerBytes): void {
    this.#hasUnsent = true
    this.#addAll(output)
  }

  /** Keeps nothing, from now on either. */
  discard(): void {
    this.#isDiscarded = true
    this.#chunks = []
    this.#bytes = 0
  }

  /** Everything, and what is still to come, as UTF-8; null when that is nothing. A cut one says so at its end. */
  text(toCome: AnswerBytes | null = null): string | null {
    if (toCome !== null) return this.#and(toCome).text()
    if (this.empty || this.#limit === 0) return null
    const decoder = new StringDecoder('utf8')
    let text = ''
    for (const chunk of this.#chunks) {
      text += typeof chunk === 'string' ? decoder.end() + chunk : decoder.write(chunk)
    }
    return this.#cut ? `${text}\n[cut after ${this.#limit} bytes]` : text + decoder.end()
  }

  #and(toCome: AnswerBytes): AnswerBody {
    const body = new AnswerBody(this.#limit)
    body.#chunks = [...this.#chunks]
    body.#bytes = this.#bytes
    body.#cut = this.#cut
    body.#isDiscarded = this.#isDiscarded
    if (!this.#hasUnsent) body.#addAll(toCome)
    return body
  }

  /** In whatever charset it goes out, the text is the text; only these encodings are of bytes. */
  #addText(text: string, encoding: unknown): void {
    const isBytes = typeof encoding === 'string' && /^(?:hex|base64(?:url)?)$/i.test(encoding)
    const chunk = isBytes ? Buffer.from(text, encoding as BufferEncoding) : text
    this.#add(chunk, Buffer.byteLength(chunk))
  }

  #addAll(output: AnswerBytes): void {
    if (typeof output === 'string' || Buffer.isBuffer(output)) this.#add(output, Buffer.byteLength(output))
    else for (const chunk of output) this.#add(chunk, chunk.length)
  }

  #add(chunk: Uint8Array | string, bytes: number): void {
    if (this.#isDiscarded) return
    const room = this.#limit - this.#bytes
    this.#bytes += bytes
    if (this.#cut) return
    if (bytes <= room) {
      this.#chunks.push(chunk)
      return
    }
    this.#cut = true
    const whole = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.#chunks.push(whole.subarray(0, room))
  }
}
