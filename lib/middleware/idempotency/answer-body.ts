import { StringDecoder } from 'node:string_decoder'
import type { AnswerBytes } from '../../core/call/index.ts'

/**
 * Keeps the answer of a call by reference while it goes out, and decodes it only at the end, so that it neither
 * copies a large answer nor slows a stream.
 */
export class AnswerBody {
  readonly #limit: number
  #chunks: (Uint8Array | string)[] = []
  #bytes = 0
  #cut = false
  #hasUnsent = false
  #isDiscarded = false

  /** @param limit the largest number of bytes to keep. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get empty(): boolean {
    return this.#bytes === 0
  }

  /** Adds what was passed to `write` or `end`. */
  addSent(chunk: unknown, encoding?: unknown): void {
    // Bytes after unsent output are an error about the answer, not part of it.
    if (this.#hasUnsent) return
    if (typeof chunk === 'string') this.#addText(chunk, encoding)
    else if (chunk instanceof Uint8Array) this.#add(chunk, chunk.byteLength)
  }

  /** Adds output that belongs to the answer and is not sent. */
  addUnsent(output: AnswerBytes): void {
    this.#hasUnsent = true
    this.#addAll(output)
  }

  /** Drops everything, and keeps nothing from now on. */
  discard(): void {
    this.#isDiscarded = true
    this.#chunks = []
    this.#bytes = 0
  }

  /** Returns the answer and the output still to come as text; null if it is empty. A cut answer ends with a note. */
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

  /** Returns about how many bytes {@link text} has. */
  bytesWith(toCome: AnswerBytes | null): number {
    const whole = toCome === null ? this : this.#and(toCome)
    return Math.min(whole.#bytes, whole.#limit)
  }

  /**
   * Returns the bytes of {@link text}, by reference; undefined if there are at most `most`.
   *
   * @param toCome the output still to come.
   */
  bytesBeyond(most: number, toCome: AnswerBytes | null): readonly Uint8Array[] | undefined {
    const whole = toCome === null ? this : this.#and(toCome)
    if (whole.#bytes <= most || whole.#limit <= most) return undefined
    if (whole.#cut) return [Buffer.from(whole.text() as string)]
    return whole.#chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
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

  /** Adds a string. Only these encodings denote bytes; any other is a charset, which leaves the text unchanged. */
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
