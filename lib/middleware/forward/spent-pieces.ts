import type { Socket } from 'node:net'
import { freeSpent } from '../../core/call/index.ts'

/** If more pieces are unwritten, they are left to the garbage collector. */
const MAX_PIECES = 256

/** Frees pieces that went through a pipe. A pipe reports only when all pieces are written, not each one. */
export class SpentPieces {
  readonly #unwrittenBytes: () => number
  #pieces: Buffer[] = []

  /** @param unwrittenBytes returns how many of the added bytes are not written yet. */
  constructor(unwrittenBytes: () => number) {
    this.#unwrittenBytes = unwrittenBytes
  }

  add(piece: Buffer): void {
    this.freeWritten()
    if (this.#pieces.length >= MAX_PIECES) this.#pieces = []
    this.#pieces.push(piece)
  }

  freeWritten(): void {
    if (this.#pieces.length === 0 || this.#unwrittenBytes() > 0) return
    for (const piece of this.#pieces) freeSpent(piece)
    this.#pieces = []
  }
}

/** Frees the buffers read from a connection, once it has seen that the HTTP parser copies the body out of them. */
export class SpentReads {
  readonly #seen = new WeakSet<ArrayBufferLike>()
  #copied = false

  /** The listener runs before the parser's, so that a read is known before its pieces. */
  watch(socket: Socket): void {
    socket.prependListener('data', (read: Buffer) => {
      if (this.#copied) freeSpent(read)
      else this.#seen.add(read.buffer)
    })
  }

  /** Compares a piece of the body with the reads it may come from. */
  compare(piece: Buffer): void {
    this.#copied ||= !this.#seen.has(piece.buffer)
  }
}
