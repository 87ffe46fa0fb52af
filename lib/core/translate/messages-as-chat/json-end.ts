/** Follows a JSON object or list that comes in pieces, to tell when it is whole. Keeps none of it. */
export class JsonEnd {
  #depth = 0
  #inString = false
  #escaped = false
  /** Whether it has begun and all that was opened is closed. */
  whole = false

  take(piece: string): void {
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
      this.whole = this.#depth <= 0
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
