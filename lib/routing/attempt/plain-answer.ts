import { Buffer } from 'node:buffer'
import type { AnswerReading } from '../../core/operations/index.ts'
import { JsonDigest } from './json-digest.ts'
import { type Failure, malformed } from './outcome.ts'

/** Past this an answer is taken for broken. */
const LONGEST_ANSWER = 256 * 1024 * 1024

/** Collects a body as it arrives. */
export class BodyCollector {
  readonly #limit: number
  #chunks: Buffer[] = []
  #size = 0
  /** Whether the body is longer than the limit. */
  overflowed = false

  constructor(limit: number = LONGEST_ANSWER) {
    this.#limit = limit
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  /** False once the body is longer than the limit; what came before is kept. */
  push(chunk: Buffer): boolean {
    if (this.overflowed || this.#size + chunk.length > this.#limit) {
      this.overflowed = true
      return false
    }
    this.#chunks.push(chunk)
    this.#size += chunk.length
    return true
  }

  take(): Buffer {
    const [first] = this.#chunks
    return this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks, this.#size)
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

/** Reads a whole answer that came with 200, or says what is wrong with it. */
export function readPlain(text: string, read: (json: unknown) => AnswerReading): AnswerReading | Failure {
  const json = parseJson(text)
  if (json === undefined) return malformed('the answer is not JSON')
  try {
    return read(json)
  } catch (error) {
    return unreadable(error)
  }
}

/** What is made of an answer, or that it cannot be made of it. */
export function orMalformed<Made extends object>(make: () => Made): Made | Failure {
  try {
    return make()
  } catch (error) {
    return unreadable(error)
  }
}

function unreadable(error: unknown): Failure {
  return malformed(error instanceof Error ? error.message : String(error))
}

export function isFailure(value: object): value is Failure {
  return 'retryable' in value
}
