import type { IncomingMessage, ServerResponse } from 'node:http'

/** How much of a refused upload is still read, and for how long, before the connection is cut. */
const MOST_BYTES = 64 * 1024 * 1024
const MOST_MS = 30_000

/**
 * Ends a response whose request is still being sent: answers at once, reads the rest of the upload and throws it away,
 * and closes the connection only then. One that is closed over unread bytes is reset, and the reset can overtake the
 * answer, which many clients look for only once they have sent everything.
 */
export function endWhileUploading(req: IncomingMessage, res: ServerResponse, body: Buffer | undefined): void {
  let bytes = 0
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > MOST_BYTES) end()
  }
  const end = (): void => {
    clearTimeout(timer)
    req.off('data', count).off('end', end).off('close', end)
    res.end()
  }
  const timer = setTimeout(end, MOST_MS).unref()
  req.on('data', count).on('end', end).on('close', end)
  req.resume()
  res.setHeader('connection', 'close')
  if (body) res.write(body)
  else res.flushHeaders()
}
