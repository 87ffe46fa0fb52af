import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../../core/errors/index.ts'

/** Receives the bytes of a body, which are empty if there is none, or an error. */
export type BytesReceiver = (error: unknown, bytes?: Buffer) => void

/**
 * Collects the raw bytes of a body. A body over `limit` bytes is refused at once by its `Content-Length`, or as soon
 * as it exceeds the limit. If the caller leaves before the end, the error is `client_closed_request`.
 */
export function receiveBody(req: IncomingMessage, limit: number, receive: BytesReceiver): void {
  if (Number(req.headers['content-length']) > limit) {
    receive(new GatewayError('request_too_large'))
    return
  }
  let chunks: Buffer[] | undefined
  let size = 0
  // The listeners are not removed: removing four of them costs more than letting them ignore later events.
  let done = false
  const onData = (chunk: Buffer): void => {
    if (done) return
    size += chunk.length
    if (chunks) chunks.push(chunk)
    else chunks = [chunk]
    if (size <= limit) return
    done = true
    req.pause()
    receive(new GatewayError('request_too_large'))
  }
  const onEnd = (): void => {
    if (done) return
    done = true
    const whole = chunks?.length === 1 ? chunks[0] : Buffer.concat(chunks ?? [], size)
    chunks = undefined
    receive(undefined, whole)
  }
  const onBroken = (cause?: Error): void => {
    if (done) return
    done = true
    receive(new GatewayError('client_closed_request', { cause }))
  }
  req.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
}
