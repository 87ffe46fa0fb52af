import { type Buffer, isAscii } from 'node:buffer'
import { QUOTE } from './bytes.ts'
import { endOfString } from './json-text.ts'

/** A value takes an object of this size. */
const VALUE_BYTES = 64
/** Shorter strings are taken for wide ones. */
const LONG = 1024

/**
 * Returns the most memory that a JSON text takes when it is parsed. A string takes one byte for each of its own, as images in base64 do,
 * or two if it has a wide character: a whole file must not count twice for a word beside it.
 */
export function parsedBytes(raw: Buffer, values: number): number {
  const bytes = VALUE_BYTES * values + raw.length
  if (isNarrow(raw)) return bytes
  let wide = raw.length
  for (let at = 0; at < raw.length; ) {
    if (raw[at] !== QUOTE) {
      at++
      continue
    }
    const end = endOfString(raw, at)
    if (end - at >= LONG && isNarrow(raw.subarray(at, end))) wide -= end - at
    at = end
  }
  return bytes + wide
}

/** Whether no string of a text can have a wide character, written as it is or as an escape. */
function isNarrow(text: Buffer): boolean {
  return isAscii(text) && !text.includes('\\u')
}
