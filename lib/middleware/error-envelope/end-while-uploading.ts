import type { IncomingMessage, ServerResponse } from 'node:http'

/** How much of a refused upload is read, and for how long, before the connection is cut. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_MS = 30_000

/**
 * Ends a response whose request is still being sent. It answers at once, discards the rest of the upload, and then
 * closes the connection. A connection that is closed with unread bytes is reset, and the reset can overtake the
 * answer, which many clients read only after their upload.
 */
export function endWhileUploading(req: IncomingMessage, res: ServerResponse, body: Buffer | undefined): void {
  let bytes = 0
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > MAX_BYTES) end()
  }
  const end = (): void => {
    clearTimeout(timer)
    req.off('data', count).off('end', end).off('close', end)
    res.end()
  }
  const timer = setTimeout(end, MAX_MS).unref()
  req.on('data', count).on('end', end).on('close', end)
  req.resume()
  res.setHeader('connection', 'close')
  if (body) res.write(body)
  else res.flushHeaders()
}
