/** Writes bits, most significant first, as in H.264. */
class BitWriter {
  readonly #bytes: number[] = []
  #free = 0

  /** Writes a number with a fixed count of bits. */
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

  /** Writes a number in Exp-Golomb code. */
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

  /** Ends the data with a one bit and zeros up to a whole byte, and returns it. */
  end(): number[] {
    this.bits(1, 1)
    return this.#bytes
  }
}

/** The size of a picture in squares of 16 by 16 pixels. */
export interface Squares {
  readonly across: number
  readonly down: number
}

const MACROBLOCK_OF_SAMPLES = 25
const LUMA_SAMPLES = 256
const CHROMA_SAMPLES = 128
const NO_COLOUR = 128

/** Returns the sequence parameters (baseline profile, level 1). */
export function sequenceParameters({ across, down }: Squares): Buffer {
  const bits = new BitWriter().raw([66, 0xc0, 10])
  bits.number(0).number(0).number(2).number(0).bits(0, 1)
  bits.number(across - 1).number(down - 1)
  // Whole frames, no cropping, no display information.
  return unit(0x67, bits.bits(0b1100, 4).end())
}

/** Returns the picture parameters: simple coding, no deblocking. */
export function pictureParameters(): Buffer {
  const bits = new BitWriter().number(0).number(0).bits(0, 2)
  bits.number(0).number(0).number(0).bits(0, 3)
  return unit(0x68, bits.number(0).number(0).number(0).bits(0b100, 3).end())
}

/**
 * Returns a picture that does not depend on others. Its squares are uncompressed samples, which all decoders support.
 *
 * @param number the number of the picture.
 * @param greyOf returns the brightness of a square, 1 to 255.
 */
export function picture(
  number: number,
  { across, down }: Squares,
  greyOf: (x: number, y: number) => number,
): Buffer {
  const bits = new BitWriter().number(0).number(7).number(0).bits(0, 4)
  // Adjacent pictures must have different numbers.
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

/** Returns a unit of the stream. It inserts a byte where two zeros and a small byte would look like the next unit. */
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
