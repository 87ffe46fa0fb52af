/**
 * The map that is for sale: the Mandelbrot set, in square tiles like those of any map on the web. At zoom 0 one tile
 * shows all of it; each further zoom cuts every tile into four.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { GatewayError } from 'express-model-gateway'

export const TILE_SIZE = 256

/** Left edge, upper edge and width of the whole map. */
const MAP = { left: -2.25, top: 1.5, width: 3 }
/** Deeper, neighbouring pixels are the same to a double. */
const DEEPEST_ZOOM = 36
/** Rows drawn at a stretch: other requests have their turn in between. */
const ROWS_AT_A_STRETCH = 16

/** Which tile, and how many steps at most are spent on a pixel: the more, the finer its border. */
export interface Tile {
  readonly zoom: number
  readonly x: number
  readonly y: number
  readonly detail: number
}

/** A drawn tile. */
export interface Drawing {
  /** One byte for each pixel, row by row. */
  readonly pixels: Buffer
  /** Steps that drawing it took. How many was not known before. */
  readonly steps: number
}

/**
 * Reads which tile is asked for.
 *
 * @throws {GatewayError} `invalid_request` when there is no such tile.
 */
export function readTile(params: Record<'z' | 'x' | 'y', string>, detail: unknown = '200'): Tile {
  const zoom = readWhole('z', params.z, 0, DEEPEST_ZOOM)
  const last = 2 ** zoom - 1
  return {
    zoom,
    x: readWhole('x', params.x, 0, last),
    y: readWhole('y', params.y, 0, last),
    detail: readWhole('detail', detail, 1, 1000),
  }
}

/** The most steps that a tile can take. */
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
      // What never gets far is the set itself: black.
      pixels[row * TILE_SIZE + column] = taken === detail ? 0 : 255 - ((taken * 4) % 192)
    }
    if (row % ROWS_AT_A_STRETCH === ROWS_AT_A_STRETCH - 1) await nextTurn()
  }
  return { pixels, steps }
}

/** How many steps of z → z² + c stay within two of zero; `most` where none gets further. */
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
