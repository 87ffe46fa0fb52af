/** Finds the end of a JSON object or array that comes in pieces, without storing it. */
export class JsonScanner {
  #depth = 0
  #inString = false
  #escaped = false
  /** Whether the JSON has begun and each bracket is closed. */
  complete = false

  push(piece: string): void {
    for (let i = 0; i < piece.length; i++) this.#step(piece.charCodeAt(i))
  }

  #step(code: number): void {
    if (this.#escaped) this.#escaped = false
    else if (this.#inString) {
      if (code === BACKSLASH) this.#escaped = true
      else if (code === QUOTE) this.#inString = false
    } else if (code === QUOTE) this.#inString = true
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      this.#depth--
      this.complete = this.#depth <= 0
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
