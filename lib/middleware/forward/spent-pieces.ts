import type { Socket } from 'node:net'
import { freeSpent } from '../../core/call/index.ts'

/** More that is unwritten than this is no longer watched, and left to the collector. */
const MOST_PIECES = 256

/** Frees the pieces that went through a pipe, which does not say when each is written, but when all are. */
export class SpentPieces {
  readonly #unwrittenBytes: () => number
  #pieces: Buffer[] = []

  /** @param unwrittenBytes how much of all that was added is still on its way. */
  constructor(unwrittenBytes: () => number) {
    this.#unwrittenBytes = unwrittenBytes
  }

  add(piece: Buffer): void {
    this.freeWritten()
    if (this.#pieces.length >= MOST_PIECES) this.#pieces = []
    this.#pieces.push(piece)
  }

  freeWritten(): void {
    if (this.#pieces.length === 0 || this.#unwrittenBytes() > 0) return
    for (const piece of this.#pieces) freeSpent(piece)
    this.#pieces = []
  }
}

/**
 * Frees what was read from a connection once the parser has copied the body out of it; as long as nobody has seen that it
 * does, nothing.
 */
export class SpentReads {
  readonly #seen = new WeakSet<ArrayBufferLike>()
  #copied = false

  /** In front of the parser, so that what it makes of a read is seen later than the read. */
  watch(socket: Socket): void {
    socket.prependListener('data', (read: Buffer) => {
      if (this.#copied) freeSpent(read)
      else this.#seen.add(read.buffer)
    })
  }

  /** Is shown a piece of the body. */
  compare(piece: Buffer): void {
    this.#copied ||= !this.#seen.has(piece.buffer)
  }
}
