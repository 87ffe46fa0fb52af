import type { ServerResponse } from 'node:http'

/** Sends an answer in its pieces. They are not joined, so that nothing large is in memory twice. */
export function writePieces(res: ServerResponse, pieces: readonly Buffer[]): void {
  res.setHeader(
    'content-length',
    pieces.reduce((sum, piece) => sum + piece.length, 0),
  )
  for (const piece of pieces.slice(0, -1)) res.write(piece)
  res.end(pieces.at(-1))
}
