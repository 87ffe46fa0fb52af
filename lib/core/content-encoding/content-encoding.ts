import type { Transform } from 'node:stream'
// As a whole: an older Node, which lacks a name, would fail before it could be refused with a clear sentence.
import zlib from 'node:zlib'

/** A content encoding that is read. */
export interface Encoding {
  /** Returns a stream that undoes it. With the first bytes, it also reads `deflate` without the head of zlib's format. */
  readonly decoder: (first?: Buffer) => Transform
  /** Undoes it for a short body. @throws Error if that is not encoded so, or would become too long. */
  readonly decode: (bytes: Buffer, options: { readonly maxOutputLength: number }) => Buffer
}

const GZIP: Encoding = { decoder: () => zlib.createGunzip(), decode: zlib.gunzipSync }

/** The encodings that are read, by their names in a header. */
export const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ['gzip', GZIP],
  // RFC 9110, 8.4.1.3.
  ['x-gzip', GZIP],
  [
    'deflate',
    {
      decoder: (first) => (!first || hasZlibHead(first) ? zlib.createInflate() : zlib.createInflateRaw()),
      decode: (bytes, options) =>
        (hasZlibHead(bytes) ? zlib.inflateSync : zlib.inflateRawSync)(bytes, options),
    },
  ],
  ['br', { decoder: () => zlib.createBrotliDecompress(), decode: zlib.brotliDecompressSync }],
  ['zstd', { decoder: () => zlib.createZstdDecompress(), decode: zlib.zstdDecompressSync }],
])

/** A body that is no longer than this may have been compressed to nothing. */
const ANY_RATIO_BYTES = 1024 * 1024
/** No text shrinks to less than a hundredth, unless it is made to fill memory. */
const MAX_RATIO = 100

/** Returns how long a body of so many encoded bytes may become. */
export function mostDecoded(encodedBytes: number): number {
  return Math.max(ANY_RATIO_BYTES, MAX_RATIO * encodedBytes)
}

/** Whether bytes begin as zlib's format does. Some servers send `deflate` without it. */
function hasZlibHead(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8
}
