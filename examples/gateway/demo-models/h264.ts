/** Bits, most significant first, as H.264 writes them. */
class BitWriter {
  readonly #bytes: number[] = []
  #free = 0

  /** A number of so many bits. */
  bits(value: number, count: number): this {
    for (let at = count - 1; at >= 0; at--) {
      if (this.#free === 0) {
        this.#bytes.push(0)
        this.#free = 8
      }
      this.#free--
      const last = this.#bytes.length - 1
      this.#bytes[last] = (this.#bytes[last] ?? 0) | (((value >> at) & 1) << this.#free)
    }
    return this
  }

  /** A number in the code in which small ones are short (Exp-Golomb). */
  number(value: number): this {
    const length = Math.floor(Math.log2(value + 1))
    return this.bits(0, length).bits(value + 1, length + 1)
  }

  align(): this {
    this.#free = 0
    return this
  }

  raw(bytes: Iterable<number>): this {
    for (const byte of bytes) this.#bytes.push(byte)
    return this
  }

  /** Ends it: a one, and zeros up to a whole byte. */
  end(): number[] {
    this.bits(1, 1)
    return this.#bytes
  }
}

/** A picture in squares of 16 by 16 pixels. */
export interface Squares {
  readonly across: number
  readonly down: number
}

const MACROBLOCK_OF_SAMPLES = 25
const LUMA_SAMPLES = 256
const CHROMA_SAMPLES = 128
const NO_COLOUR = 128

/** The parameters of a stream of such pictures (baseline profile, level 1). */
export function sequenceParameters({ across, down }: Squares): Buffer {
  const bits = new BitWriter().raw([66, 0xc0, 10])
  bits.number(0).number(0).number(2).number(0).bits(0, 1)
  bits.number(across - 1).number(down - 1)
  // Whole frames, nothing cut off, nothing said of how to show them.
  return unit(0x67, bits.bits(0b1100, 4).end())
}

/** The parameters of its pictures: simple coding, no smoothing of edges. */
export function pictureParameters(): Buffer {
  const bits = new BitWriter().number(0).number(0).bits(0, 2)
  bits.number(0).number(0).number(0).bits(0, 3)
  return unit(0x68, bits.number(0).number(0).number(0).bits(0b100, 3).end())
}

/**
 * A picture that needs no other. Its squares are plain samples, so that anything that plays H.264 shows them as they are.
 *
 * @param number of the picture.
 * @param greyOf how bright a square is, 1 to 255.
 */
export function picture(
  number: number,
  { across, down }: Squares,
  greyOf: (x: number, y: number) => number,
): Buffer {
  const bits = new BitWriter().number(0).number(7).number(0).bits(0, 4)
  // Two such pictures in a row have different numbers.
  bits
    .number(number % 2)
    .bits(0, 2)
    .number(0)
    .number(1)
  for (let y = 0; y < down; y++) {
    for (let x = 0; x < across; x++) {
      const samples = Buffer.alloc(LUMA_SAMPLES + CHROMA_SAMPLES, NO_COLOUR)
      samples.fill(greyOf(x, y), 0, LUMA_SAMPLES)
      bits.number(MACROBLOCK_OF_SAMPLES).align().raw(samples)
    }
  }
  return unit(0x65, bits.end())
}

/** A unit of the stream; after two zero bytes a small one would read as the beginning of the next, and is marked. */
function unit(type: number, payload: readonly number[]): Buffer {
  const bytes = [type]
  let zeros = 0
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      bytes.push(3)
      zeros = 0
    }
    bytes.push(byte)
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return Buffer.from(bytes)
}
