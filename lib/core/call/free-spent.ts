/**
 * Frees a piece of a body that has been written, at once. Collected only when V8 gets to it, the pieces of a large body
 * would add up to some 100 MB of garbage, however slowly they come. Whoever keeps a piece that is passed on must copy it.
 *
 * Only where the piece is all of its memory: else others live in there. Later than now, because the parser that the
 * piece came from may still be at work on it.
 */
export function freeSpent(piece: Buffer): void {
  setImmediate(() => {
    const { buffer } = piece
    if (buffer instanceof ArrayBuffer && buffer.byteLength === piece.byteLength) buffer.transfer(0)
  })
}
