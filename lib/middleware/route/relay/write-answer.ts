import type { ServerResponse } from 'node:http'
import type { AnswerBytes } from '../../../core/call/index.ts'

/** Sends a whole answer; one in pieces as it came, so that nothing large stands twice in memory. */
export function writeAnswer(res: ServerResponse, body: AnswerBytes): void {
  const inPieces = typeof body !== 'string' && !Buffer.isBuffer(body)
  const length = inPieces ? body.reduce((sum, piece) => sum + piece.length, 0) : Buffer.byteLength(body)
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': length })
  if (!inPieces) {
    res.end(body)
    return
  }
  for (const piece of body.slice(0, -1)) res.write(piece)
  res.end(body.at(-1))
}
