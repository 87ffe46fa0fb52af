import { MAX_BLANK_LENGTH } from '../../../core/protocols/index.ts'

/** Buffers an event whose end has not come yet. It grows in linear time, however small the pieces are. */
export class PartialEvent {
  #bytes = Buffer.alloc(0)
  #size = 0
  /** The last characters, which may be the start of the blank line that ends the event. */
  seam = ''

  get size(): number {
    return this.#size
  }

  /**
   * Adds a copy of a piece.
   *
   * @param text a text that ends with the characters of the piece, as UTF-8 read as latin1.
   */
  add(piece: Buffer, text: string): void {
    const size = this.#size + piece.length
    if (size > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(size, 2 * this.#size))
      this.#bytes.copy(grown, 0, 0, this.#size)
      this.#bytes = grown
    }
    piece.copy(this.#bytes, this.#size)
    this.#size = size
    this.seam = text.slice(-Math.min(MAX_BLANK_LENGTH, size))
  }

  /** Empties the buffer, and returns its bytes followed by `rest`. */
  takeWith(rest: Buffer): Buffer {
    const bytes = Buffer.concat([this.#bytes.subarray(0, this.#size), rest])
    this.#bytes = Buffer.alloc(0)
    this.#size = 0
    this.seam = ''
    return bytes
  }
}
