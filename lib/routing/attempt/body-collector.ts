import { Buffer } from 'node:buffer'
import { JsonDigest } from './json-digest.ts'

/** A longer answer is taken for broken. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

export class BodyCollector {
  readonly #limit: number
  #first: Buffer | undefined
  /** Most bodies come in one chunk. */
  #more: Buffer[] | undefined
  #size = 0
  /** Whether the body is longer than the limit. */
  overflowed = false

  constructor(limit: number = MAX_ANSWER_BYTES) {
    this.#limit = limit
  }

  get chunks(): readonly Buffer[] {
    return this.#first ? [this.#first, ...(this.#more ?? [])] : []
  }

  /** Adds a chunk. Returns false once the body is longer than the limit; the chunks before stay available. */
  push(chunk: Buffer): boolean {
    if (this.overflowed || this.#size + chunk.length > this.#limit) {
      this.overflowed = true
      return false
    }
    this.#size += chunk.length
    if (this.#first) {
      this.#more ??= []
      this.#more.push(chunk)
    } else this.#first = chunk
    return true
  }

  take(): Buffer {
    return this.#first && !this.#more ? this.#first : Buffer.concat(this.chunks, this.#size)
  }
}

/** Collects a body without copying it: its chunks as they came, and a digest of its JSON. */
export class DataCollector {
  readonly #body = new BodyCollector()
  readonly #digest = new JsonDigest()

  get overflowed(): boolean {
    return this.#body.overflowed
  }

  push(chunk: Buffer): boolean {
    const fits = this.#body.push(chunk)
    if (fits) this.#digest.push(chunk)
    return fits
  }

  get chunks(): readonly Buffer[] {
    return this.#body.chunks
  }

  /** The body's JSON with long strings and long lists of numbers cut short. */
  get digest(): string {
    return this.#digest.text()
  }
}

/** Parses a text as JSON; returns undefined if it is not valid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
