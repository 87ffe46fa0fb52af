import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const compress = promisify<Buffer, Buffer>(deflate)

/** Encodes a square picture of grey pixels, one byte each, as PNG. */
export async function encodePng(pixels: Buffer, size: number): Promise<Buffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(size, 0)
  header.writeUInt32BE(size, 4)
  // Eight bits per pixel, greyscale, default compression and filter method, no interlacing.
  header.set([8, 0, 0, 0, 0], 8)
  // Each row begins with its filter type, 0 for none.
  const rows = Buffer.alloc(size * (size + 1))
  for (let row = 0; row < size; row++) pixels.copy(rows, row * (size + 1) + 1, row * size, (row + 1) * size)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', await compress(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
