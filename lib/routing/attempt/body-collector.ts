import { Buffer } from 'node:buffer'
import { JsonDigest } from './json-digest.ts'

/** Past this an answer is taken for broken. */
const LONGEST_ANSWER = 256 * 1024 * 1024

/** Collects a body as it arrives. */
export class BodyCollector {
  readonly #limit: number
  #first: Buffer | undefined
  /** Most bodies come in one chunk. */
  #more: Buffer[] | undefined
  #size = 0
  /** Whether the body is longer than the limit. */
  overflowed = false

  constructor(limit: number = LONGEST_ANSWER) {
    this.#limit = limit
  }

  get chunks(): readonly Buffer[] {
    return this.#first ? [this.#first, ...(this.#more ?? [])] : []
  }

  /** False once the body is longer than the limit; what came before is kept. */
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

/** Collects a body of which no copy is made: its chunks as they came, and what there is to read of it. */
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

  /** The chunks, in their order. */
  get chunks(): readonly Buffer[] {
    return this.#body.chunks
  }

  /** JSON in which long strings and lists of numbers are cut short. */
  get digest(): string {
    return this.#digest.text()
  }
}

/** A text as JSON; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
