import { Buffer } from 'node:buffer'

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LETTER_U = 0x75

/** Bytes kept of a string … */
const KEPT_OF_STRING = 256
/** … and numbers kept of a list. */
const KEPT_OF_NUMBERS = 4

/** What numbers are written in, commas and white space between them included. */
const IN_NUMBERS = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eE, \t\r\n')) IN_NUMBERS[byte] = 1

/** Where the text stands that is being read. */
type Place = 'between' | 'string' | 'long string' | 'many numbers'

/**
 * Makes the digest of a JSON text as its bytes pass: the same text with long strings and lists of numbers cut short. It
 * says what an answer holds without a second copy of its images or vectors. What is no JSON stays none.
 */
export class JsonDigest {
  readonly #kept: Buffer[] = []
  #place: Place = 'between'
  /** Whether nothing but numbers has come since a list began, and how many commas. */
  #inNumbers = false
  #commas = 0
  /** Bytes of the string so far. */
  #stringBytes = 0
  /** Bytes that still belong to an escape of the string. */
  #escapeBytes = 0
  /** Whether the byte before was a backslash that escapes the next. */
  #escaping = false

  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#place === 'long string') at = this.#skipString(chunk, at)
      else if (this.#place === 'many numbers') at = this.#skipNumbers(chunk, at)
      else {
        const end = this.#read(chunk, at)
        // A copy: a slice would keep all of the chunk.
        this.#kept.push(Buffer.from(chunk.subarray(at, end)))
        at = end
      }
    }
  }

  /** Up to what is cut. */
  #read(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length) {
      if (this.#place === 'between') at = this.#readBetween(chunk, at)
      else if (this.#place === 'string') at = this.#readString(chunk, at)
      else break
    }
    return at
  }

  /** The digest of what has come. */
  text(): string {
    return Buffer.concat(this.#kept).toString()
  }

  /** Up to the next string, or the first number that is too many; the quote that opens a string is read, too. */
  #readBetween(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (byte === QUOTE) {
        this.#place = 'string'
        this.#inNumbers = false
        this.#stringBytes = 0
        return at + 1
      }
      if (byte === OPEN_BRACKET) {
        this.#inNumbers = true
        this.#commas = 0
      } else if (!this.#inNumbers) continue
      else if (byte === COMMA && ++this.#commas === KEPT_OF_NUMBERS) {
        this.#place = 'many numbers'
        return at
      } else if (IN_NUMBERS[byte] === 0) this.#inNumbers = false
    }
    return chunk.length
  }

  #skipNumbers(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (IN_NUMBERS[byte] === 1) continue
      // Something else stands in the list, too.
      if (byte !== CLOSE_BRACKET) this.#kept.push(Buffer.from(','))
      this.#place = 'between'
      this.#inNumbers = false
      return at
    }
    return chunk.length
  }

  /** Up to the end of a string, or as far as it is kept. */
  #readString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (this.#escapeBytes > 0) {
        // \u is followed by four more.
        this.#escapeBytes = this.#escaping && byte === LETTER_U ? 4 : this.#escapeBytes - 1
        this.#escaping = false
      } else if (byte === QUOTE) {
        this.#place = 'between'
        return at + 1
      } else if (this.#stringBytes >= KEPT_OF_STRING && (byte & 0xc0) !== 0x80) {
        this.#place = 'long string'
        return at
      } else if (byte === BACKSLASH) {
        this.#escapeBytes = 1
        this.#escaping = true
      }
      this.#stringBytes++
    }
    return chunk.length
  }

  /** Up to the quote that ends a string; that is kept. */
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
        this.#place = 'between'
        return quote + 1
      }
      at = quote + 1
    }
  }

  /** Whether an odd number of backslashes stands before `end`, those before this chunk included. */
  #escapesAt(chunk: Buffer, from: number, end: number): boolean {
    let first = end
    while (first > from && chunk[first - 1] === BACKSLASH) first--
    const odd = (end - first) % 2 === 1
    return first === from && this.#escaping ? !odd : odd
  }
}
