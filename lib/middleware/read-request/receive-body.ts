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
  const chunks: Buffer[] = []
  let size = 0
  const stop = (error: unknown, bytes?: Buffer): void => {
    req.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
    receive(error, bytes)
  }
  const onData = (chunk: Buffer): void => {
    size += chunk.length
    chunks.push(chunk)
    if (size <= limit) return
    req.pause()
    stop(new GatewayError('request_too_large'))
  }
  const onEnd = (): void => stop(undefined, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size))
  const onBroken = (cause?: Error): void => stop(new GatewayError('client_closed_request', { cause }))
  req.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
}
