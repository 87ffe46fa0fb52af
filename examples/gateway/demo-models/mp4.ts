import { picture, pictureParameters, type Squares, sequenceParameters } from './h264.ts'

const SQUARES: Squares = { across: 4, down: 3 }
const [WIDTH, HEIGHT] = [SQUARES.across * 16, SQUARES.down * 16]
const PICTURES_PER_SECOND = 4
/** Units of time per second. */
const TIMESCALE = 1000

/** Returns a video as MP4: grey squares in a wave, 64 by 48 pixels, the same for the same seed. */
export function makeMp4(seconds: number, seed: number): Buffer {
  const count = Math.max(1, Math.round(seconds * PICTURES_PER_SECOND))
  const pictures = Array.from({ length: count }, (_, at) => {
    const grey = (x: number, y: number) => 128 + Math.round(100 * Math.sin(seed + at / 3 + x + 2 * y))
    const bytes = picture(at, SQUARES, grey)
    return Buffer.concat([u32(bytes.length), bytes])
  })
  const head = box('ftyp', text('isom'), u32(512), text('isomiso2avc1mp41'))
  const sizes = pictures.map(({ length }) => length)
  // The header holds the offset of the pictures; its length does not depend on the value.
  const offset = head.length + movie(sizes, 0).length + 8
  return Buffer.concat([head, movie(sizes, offset), box('mdat', ...pictures)])
}

function movie(sizes: readonly number[], offset: number): Buffer {
  const duration = Math.round((sizes.length * TIMESCALE) / PICTURES_PER_SECOND)
  const header = [u32(0, 0, TIMESCALE, duration, 0x10000), u16(0x100, 0), u32(0, 0), MATRIX]
  const track = [u32(0, 0, 1, 0, duration, 0, 0), u16(0, 0, 0, 0), MATRIX, u32(WIDTH << 16, HEIGHT << 16)]
  const media = box(
    'mdia',
    full('mdhd', u32(0, 0, TIMESCALE, duration), u16(0x55c4, 0)),
    full('hdlr', u32(0), text('vide'), u32(0, 0, 0), text('demo\0')),
    box('minf', full('vmhd', u16(0, 0, 0, 0)), box('dinf', REFERENCE), samples(sizes, offset)),
  )
  return box(
    'moov',
    full('mvhd', ...header, u32(0, 0, 0, 0, 0, 0, 2)),
    box('trak', box('tkhd', u32(3), ...track), media),
  )
}

/** The data is in this file. */
const REFERENCE = full('dref', u32(1), box('url ', u32(1)))
/** No rotation and no scaling. */
const MATRIX = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

function samples(sizes: readonly number[], offset: number): Buffer {
  const count = sizes.length
  return box(
    'stbl',
    full('stsd', u32(1), description()),
    full('stts', u32(1, count, TIMESCALE / PICTURES_PER_SECOND)),
    full('stsc', u32(1, 1, count, 1)),
    full('stsz', u32(0, count, ...sizes)),
    full('stco', u32(1, offset)),
  )
}

function description(): Buffer {
  const [sequence, pictures] = [sequenceParameters(SQUARES), pictureParameters()]
  const decoder = box(
    'avcC',
    Buffer.from([1, 66, 0xc0, 10, 0xff, 0xe1]),
    u16(sequence.length),
    sequence,
    Buffer.from([1]),
    u16(pictures.length),
    pictures,
  )
  const size = [u16(WIDTH, HEIGHT), u32(0x480000, 0x480000, 0), u16(1)]
  return box('avc1', u16(0, 0, 0, 1), u32(0, 0, 0, 0), ...size, Buffer.alloc(32), u16(0x18, 0xffff), decoder)
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content)
  return Buffer.concat([u32(bytes.length + 8), text(type), bytes])
}

/** Returns a box with a version and flags, all zero. */
function full(type: string, ...content: readonly Buffer[]): Buffer {
  return box(type, u32(0), ...content)
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4)
  return bytes
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, at * 2)
  return bytes
}

function text(value: string): Buffer {
  return Buffer.from(value, 'latin1')
}
