/** The longest header of a frame: two bytes, eight of length, four of the mask. */
const MAX_HEADER = 14
const MASKED = 0x80
const LENGTH = 0x7f
const LENGTH_IN_2 = 126
const LENGTH_IN_8 = 127

/**
 * Follows the frames of a WebSocket through pieces that begin and end anywhere. A frame of our own must only be sent
 * between two of theirs.
 */
export class FrameBounds {
  readonly #header = Buffer.alloc(MAX_HEADER)
  #headerSize = 0
  /** The bytes of the begun frame's payload that have not come. */
  #left = 0

  /** Whether all frames that have begun have come whole. */
  get between(): boolean {
    return this.#left === 0 && this.#headerSize === 0
  }

  /** Takes a piece. */
  follow(piece: Buffer): void {
    let at = 0
    while (at < piece.length) at = this.#advance(piece, at)
  }

  /** Takes a piece up to the end of the begun frame, and returns where that is. */
  finish(piece: Buffer): number {
    let at = 0
    while (at < piece.length && !this.between) at = this.#advance(piece, at)
    return at
  }

  #advance(piece: Buffer, from: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, piece.length - from)
      this.#left -= taken
      return from + taken
    }
    this.#header[this.#headerSize++] = piece[from] as number
    if (this.#headerSize === headerLength(this.#header, this.#headerSize)) {
      this.#left = payloadLength(this.#header)
      this.#headerSize = 0
    }
    return from + 1
  }
}

/** Returns how long a header is, of which so many bytes have come; unknown before the second. */
function headerLength(header: Buffer, size: number): number | undefined {
  if (size < 2) return undefined
  const second = header[1] as number
  const length = second & LENGTH
  const extended = length === LENGTH_IN_2 ? 2 : length === LENGTH_IN_8 ? 8 : 0
  return 2 + extended + (second & MASKED ? 4 : 0)
}

function payloadLength(header: Buffer): number {
  const length = (header[1] as number) & LENGTH
  if (length === LENGTH_IN_2) return header.readUInt16BE(2)
  return length === LENGTH_IN_8 ? Number(header.readBigUInt64BE(2)) : length
}

const FINAL_CLOSE = 0x88

/**
 * Returns a close frame.
 *
 * @param reason at most 123 bytes.
 * @param masked whether it goes to a server. The mask is zero, which changes nothing in the payload.
 */
export function closeFrame(code: number, reason: string, masked: boolean): Buffer {
  const text = Buffer.from(reason)
  const head = Buffer.from([FINAL_CLOSE, text.length + 2 + (masked ? MASKED : 0)])
  const status = Buffer.from([code >> 8, code & 0xff])
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), status, text])
}
