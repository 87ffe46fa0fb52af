import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import type { HeldBody } from '../../core/body-budget/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

/** Hands over the bytes of a body; empty when there is none. */
export type BytesReceiver = (error: unknown, bytes?: Buffer) => void

/** Opens a stream that decompresses; null: the bytes are as they are. */
export type Decompressor = (() => Transform) | null

const DECOMPRESSORS: ReadonlyMap<string, Decompressor> = new Map<string, Decompressor>([
  ['identity', null],
  ['gzip', createGunzip],
  // RFC 9110, 8.4.1.3.
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
])

/** Returns the decompressor for a `Content-Encoding`; undefined if it is not supported. */
export function decompressorOf(encoding: string): Decompressor | undefined {
  return DECOMPRESSORS.get(encoding.toLowerCase())
}

/** No text of a request shrinks to less than a hundredth, unless it is made to fill memory. */
const MAX_RATIO = 100
/** A body that is no longer than this may shrink to nothing. */
const ANY_RATIO_BYTES = 1024 * 1024

/**
 * Decompresses a body off the event loop. Stops as soon as the output exceeds `limit` bytes, the budget, or
 * {@link ANY_RATIO_BYTES} and {@link MAX_RATIO} times the input.
 */
export function decompress(
  open: () => Transform,
  bytes: Buffer,
  limit: number,
  held: HeldBody,
  receive: BytesReceiver,
): void {
  const most = Math.min(limit, Math.max(ANY_RATIO_BYTES, MAX_RATIO * bytes.length))
  const stream = open()
  const pieces: Buffer[] = []
  let size = 0
  const refuse = (error: GatewayError): void => {
    pieces.length = 0
    stream.destroy()
    receive(error)
  }
  held.whenRefused(refuse)
  stream
    .on('data', (piece: Buffer) => {
      size += piece.length
      if (size > most) {
        refuse(new GatewayError('request_too_large'))
        return
      }
      pieces.push(piece)
      held.count(piece.length)
    })
    .on('end', () => receive(undefined, Buffer.concat(pieces, size)))
    .on('error', (cause) => {
      refuse(
        new GatewayError('invalid_request', {
          message: 'The body cannot be decompressed: it is not what Content-Encoding says, or not whole.',
          cause,
        }),
      )
    })
    .end(bytes)
}
