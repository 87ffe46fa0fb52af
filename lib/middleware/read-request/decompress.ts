import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { GatewayError } from '../../core/errors/index.ts'

/** Hands over the bytes of a body; empty when there is none. */
export type BytesReceiver = (error: unknown, bytes?: Buffer) => void

type Decompressor = (bytes: Buffer, options: { maxOutputLength: number }, done: BytesReceiver) => void

const DECOMPRESSORS: ReadonlyMap<string, Decompressor> = new Map<string, Decompressor>([
  ['identity', (bytes, _options, done) => done(null, bytes)],
  ['gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
  ['zstd', zstdDecompress],
])

/** Returns the decompressor for a `Content-Encoding`; undefined if it is not supported. */
export function decompressorOf(encoding: string): Decompressor | undefined {
  return DECOMPRESSORS.get(encoding.toLowerCase())
}

/** Decompresses a body off the event loop. Stops as soon as the output exceeds `limit` bytes. */
export function decompress(
  decompressor: Decompressor,
  bytes: Buffer,
  limit: number,
  receive: BytesReceiver,
): void {
  decompressor(bytes, { maxOutputLength: limit }, (error, whole) => {
    if (error) receive(refusalOf(error))
    else receive(undefined, whole)
  })
}

function refusalOf(cause: unknown): GatewayError {
  if ((cause as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') {
    return new GatewayError('request_too_large', { cause })
  }
  return new GatewayError('invalid_request', {
    message: 'The body cannot be decompressed: it is not what Content-Encoding says, or not whole.',
    cause,
  })
}
