/**
 * Frees the memory of a chunk that has been written. Otherwise V8 would collect the chunks of a large body late, and
 * they would add up to some 100 MB. If you keep a chunk that you pass on, copy it.
 *
 * Does nothing to a chunk that shares its memory with others. The memory is freed a little later, because the parser
 * that the chunk came from may still be using it.
 */
export function freeSpent(piece: Buffer): void {
  setImmediate(() => {
    const { buffer } = piece
    if (buffer instanceof ArrayBuffer && buffer.byteLength === piece.byteLength) buffer.transfer(0)
  })
}
