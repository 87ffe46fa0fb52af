/**
 * The map: the Mandelbrot set in square tiles. At zoom 0 one tile shows all of it; each further zoom splits each tile into
 * four.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { GatewayError } from 'express-model-gateway'

export const TILE_SIZE = 256

/** Left edge, upper edge and width of the whole map. */
const MAP = { left: -2.25, top: 1.5, width: 3 }
/** The deepest zoom at which a double can distinguish adjacent pixels. */
const MAX_ZOOM = 36
/** The number of rows that are drawn before other requests get their turn. */
const ROWS_AT_A_STRETCH = 16

/** The position of a tile, and the most steps per pixel: more steps make the border finer. */
export interface Tile {
  readonly zoom: number
  readonly x: number
  readonly y: number
  readonly detail: number
}

/** A drawn tile. */
export interface Drawing {
  /** One byte per pixel, row by row. */
  readonly pixels: Buffer
  /** The number of steps that drawing took. */
  readonly steps: number
}

/**
 * Reads the parameters of a tile.
 *
 * @throws {GatewayError} `invalid_request` if there is no such tile.
 */
export function readTile(params: Record<'z' | 'x' | 'y', string>, detail: unknown = '200'): Tile {
  const zoom = readWhole('z', params.z, 0, MAX_ZOOM)
  const last = 2 ** zoom - 1
  return {
    zoom,
    x: readWhole('x', params.x, 0, last),
    y: readWhole('y', params.y, 0, last),
    detail: readWhole('detail', detail, 1, 1000),
  }
}

/** Returns the most steps that a tile can take. */
export function mostSteps({ detail }: Tile): number {
  return TILE_SIZE * TILE_SIZE * detail
}

/** Draws a tile. */
export async function drawTile({ zoom, x, y, detail }: Tile): Promise<Drawing> {
  const width = MAP.width / 2 ** zoom
  const step = width / TILE_SIZE
  const left = MAP.left + x * width + step / 2
  const top = MAP.top - y * width - step / 2
  const pixels = Buffer.alloc(TILE_SIZE * TILE_SIZE)
  let steps = 0
  for (let row = 0; row < TILE_SIZE; row++) {
    for (let column = 0; column < TILE_SIZE; column++) {
      const taken = stepsUntilFar(left + column * step, top - row * step, detail)
      steps += taken
      // Points of the set itself are black.
      pixels[row * TILE_SIZE + column] = taken === detail ? 0 : 255 - ((taken * 4) % 192)
    }
    if (row % ROWS_AT_A_STRETCH === ROWS_AT_A_STRETCH - 1) await nextTurn()
  }
  return { pixels, steps }
}

/** Returns how many steps of z → z² + c stay within a distance of two from zero, at most `most`. */
function stepsUntilFar(cReal: number, cImaginary: number, most: number): number {
  let real = 0
  let imaginary = 0
  for (let taken = 0; taken < most; taken++) {
    const realSquared = real * real
    const imaginarySquared = imaginary * imaginary
    if (realSquared + imaginarySquared > 4) return taken
    imaginary = 2 * real * imaginary + cImaginary
    real = realSquared - imaginarySquared + cReal
  }
  return most
}

function readWhole(name: string, text: unknown, least: number, most: number): number {
  const number = typeof text === 'string' && /^\d{1,11}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new GatewayError('invalid_request', {
    param: name,
    message: `"${name}" must be a whole number from ${least} to ${most}.`,
  })
}
