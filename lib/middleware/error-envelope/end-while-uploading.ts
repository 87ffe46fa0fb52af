import type { IncomingMessage, ServerResponse } from 'node:http'

/** How much of a refused upload is read, and for how long, before the connection is closed. */
export interface UploadBounds {
  readonly bytes: number
  readonly ms: number
  /** How long the caller has to read the answer when so many bytes came, in milliseconds. */
  readonly graceMs: number
  /** The least number of bytes that a piece counts for: a piece of one byte takes as much work as a large one. */
  readonly perPiece: number
}

export const KNOWN_CALLER: UploadBounds = { bytes: 64 * 1024 * 1024, ms: 30_000, graceMs: 0, perPiece: 4096 }
/** A caller without a valid key gets no work done. */
export const UNKNOWN_CALLER: UploadBounds = { bytes: 64 * 1024, ms: 2000, graceMs: 500, perPiece: 512 }

/**
 * Ends a response whose request is still being sent. It answers at once, discards the rest of the upload within its
 * bounds, and then closes the connection. A connection that is closed with unread bytes is reset, and the reset can
 * overtake the answer, which many clients read only after their upload.
 */
export function endWhileUploading(
  req: IncomingMessage,
  res: ServerResponse,
  body: Buffer | undefined,
  bounds: UploadBounds,
): void {
  let bytes = 0
  const count = (chunk: Buffer): void => {
    bytes += Math.max(chunk.length, bounds.perPiece)
    if (bytes <= bounds.bytes) return
    if (bounds.graceMs === 0) end()
    else {
      req.off('data', count).pause()
      clearTimeout(timer)
      timer = setTimeout(end, bounds.graceMs).unref()
    }
  }
  const end = (): void => {
    clearTimeout(timer)
    req.off('data', count).off('end', end).off('close', end)
    res.end()
  }
  let timer = setTimeout(end, bounds.ms).unref()
  res.setHeader('connection', 'close')
  // A caller that waits for a 100 gets it with the first listener for its body, unless its answer has begun.
  if (body) res.write(body)
  else res.flushHeaders()
  req.on('data', count).on('end', end).on('close', end)
  req.resume()
}
