import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../../core/errors/index.ts'

/** Hands over the bytes of a body; empty when there is none. */
export type BytesReceiver = (error: unknown, bytes?: Buffer) => void

/**
 * Collects a body that is not compressed, at most `limit` bytes of it. What is longer is refused as soon as that shows,
 * by `Content-Length` or on the way; a caller that goes away in the middle is `client_closed_request`.
 */
export function receiveBody(req: IncomingMessage, limit: number, receive: BytesReceiver): void {
  if (Number(req.headers['content-length']) > limit) {
    receive(new GatewayError('request_too_large'))
    return
  }
  let chunks: Buffer[] | undefined
  let size = 0
  // The listeners stay: taking four of them off a request that is read costs more than that they ignore what still comes.
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
