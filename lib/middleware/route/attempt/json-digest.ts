import { Buffer } from 'node:buffer'
import { BodyCollector } from '../../../core/memory/index.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LETTER_U = 0x75

/** How many bytes of a string the digest keeps. */
const MAX_STRING_BYTES = 256
/** How many numbers of a list the digest keeps. */
const MAX_NUMBERS = 4

/** Marks the bytes that a list of numbers consists of: digits, signs, commas and white space. */
const IN_NUMBERS = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eE, \t\r\n')) IN_NUMBERS[byte] = 1

type State = 'between' | 'string' | 'long string' | 'many numbers'

/**
 * Makes a digest of a JSON text as its bytes pass: the same text with long strings and long lists of numbers cut
 * short. The digest shows what an answer holds without a second copy of its images or vectors. The digest of invalid
 * JSON is invalid, too.
 */
export class JsonDigest {
  readonly #kept: Buffer[] = []
  #state: State = 'between'
  /** Whether only numbers have come since the list began. */
  #inNumbers = false
  /** Commas since the list began. */
  #commas = 0
  /** Bytes of the string so far. */
  #stringBytes = 0
  /** Bytes that still belong to the current escape sequence. */
  #escapeBytes = 0
  /** Whether the previous byte was a backslash that escapes the next one. */
  #escaping = false

  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#state === 'long string') at = this.#skipString(chunk, at)
      else if (this.#state === 'many numbers') at = this.#skipNumbers(chunk, at)
      else {
        const end = this.#read(chunk, at)
        // A copy: a slice would keep all of the chunk.
        this.#kept.push(Buffer.from(chunk.subarray(at, end)))
        at = end
      }
    }
  }

  /** Reads up to the next part that is cut, and returns its start. */
  #read(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length) {
      if (this.#state === 'between') at = this.#readBetween(chunk, at)
      else if (this.#state === 'string') at = this.#readString(chunk, at)
      else break
    }
    return at
  }

  /** The digest of all chunks so far. */
  text(): string {
    return Buffer.concat(this.#kept).toString()
  }

  /** Reads up to and including the quote that opens a string, or up to the first number that is cut. */
  #readBetween(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (byte === QUOTE) {
        this.#state = 'string'
        this.#inNumbers = false
        this.#stringBytes = 0
        return at + 1
      }
      if (byte === OPEN_BRACKET) {
        this.#inNumbers = true
        this.#commas = 0
      } else if (!this.#inNumbers) continue
      else if (byte === COMMA && ++this.#commas === MAX_NUMBERS) {
        this.#state = 'many numbers'
        return at
      } else if (IN_NUMBERS[byte] === 0) this.#inNumbers = false
    }
    return chunk.length
  }

  #skipNumbers(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (IN_NUMBERS[byte] === 1) continue
      // The list holds something other than numbers.
      if (byte !== CLOSE_BRACKET) this.#kept.push(Buffer.from(','))
      this.#state = 'between'
      this.#inNumbers = false
      return at
    }
    return chunk.length
  }

  /** Reads up to the end of a string, or up to the part that is cut. */
  #readString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (this.#escapeBytes > 0) {
        // Four digits follow \u.
        this.#escapeBytes = this.#escaping && byte === LETTER_U ? 4 : this.#escapeBytes - 1
        this.#escaping = false
      } else if (byte === QUOTE) {
        this.#state = 'between'
        return at + 1
      } else if (this.#stringBytes >= MAX_STRING_BYTES && (byte & 0xc0) !== 0x80) {
        this.#state = 'long string'
        return at
      } else if (byte === BACKSLASH) {
        this.#escapeBytes = 1
        this.#escaping = true
      }
      this.#stringBytes++
    }
    return chunk.length
  }

  /** Skips the rest of a string, and keeps the quote that ends it. */
  #skipString(chunk: Buffer, from: number): number {
    let at = from
    for (;;) {
      const quote = chunk.indexOf(QUOTE, at)
      const end = quote < 0 ? chunk.length : quote
      const escapes = this.#escapesAt(chunk, at, end)
      if (quote < 0) {
        this.#escaping = escapes
        return chunk.length
      }
      this.#escaping = false
      if (!escapes) {
        this.#kept.push(Buffer.from('"'))
        this.#state = 'between'
        return quote + 1
      }
      at = quote + 1
    }
  }

  /** Whether an odd number of backslashes precedes `end`, including those at the end of the previous chunk. */
  #escapesAt(chunk: Buffer, from: number, end: number): boolean {
    let first = end
    while (first > from && chunk[first - 1] === BACKSLASH) first--
    const odd = (end - first) % 2 === 1
    return first === from && this.#escaping ? !odd : odd
  }
}

/** Collects a body without copying it: its chunks as they came, and a digest of its JSON. */
export class DataCollector {
  readonly #body = new BodyCollector()
  readonly #digest = new JsonDigest()

  push(chunk: Buffer): boolean {
    const fits = this.#body.push(chunk)
    if (fits) this.#digest.push(chunk)
    return fits
  }

  get size(): number {
    return this.#body.size
  }

  get overflowed(): boolean {
    return this.#body.overflowed
  }

  get chunks(): readonly Buffer[] {
    return this.#body.chunks
  }

  /** The body's JSON with long strings and long lists of numbers cut short. */
  get digest(): string {
    return this.#digest.text()
  }
}
