import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { decoderFor } from '../../../lib/routing/attempt/content-decoding.ts'

const ENCODED = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }

/** Decodes a body that breaks off. A slow reader pauses at each piece. */
async function readCut(encoding: string, bytes: Buffer, slow: boolean): Promise<number> {
  let length = 0
  await new Promise<void>((resolve) => {
    const decoder = decoderFor(encoding, {
      decoded(chunk) {
        length += chunk.length
        if (!slow) return
        decoder?.pause()
        setTimeout(() => decoder?.resume(), 2)
      },
      ended: () => resolve(),
      failed: () => resolve(),
    })
    decoder?.write(bytes)
    decoder?.cut(resolve)
  })
  return length
}

for (const [encoding, encode] of Object.entries(ENCODED)) {
  test(`a slow reader receives everything that arrived of an interrupted ${encoding} body`, async () => {
    const whole = encode(Buffer.from(randomBytes(150_000).toString('hex')))
    const cut = whole.subarray(0, whole.length - 1000)
    const fast = await readCut(encoding, cut, false)
    assert.ok(fast > 100_000)
    assert.equal(await readCut(encoding, cut, true), fast)
  })
}
