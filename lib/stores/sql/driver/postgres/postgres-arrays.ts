import { encodeText } from './postgres-values.ts'

/*
 * Arrays as Postgres sends and takes them in binary. A column of many rows is one parameter so, nothing in it is escaped,
 * and a statement's text is the same for any number of rows.
 */

/** Object ids of types, as in the table `pg_type`. */
const INT8 = 20
const TEXT = 25
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const INT8_BYTES = 8

/** A `text[]`. */
export function textArray(texts: readonly (string | null)[]): Buffer {
  const encoded = texts.map(encodeNullable)
  let size = HEADER_BYTES
  for (const text of encoded) size += LENGTH_BYTES + (text === null ? 0 : Buffer.byteLength(text))
  const array = Buffer.allocUnsafe(size)
  let at = writeHeader(array, TEXT, texts.length)
  for (const text of encoded) {
    const length = text === null ? -1 : array.write(text, at + LENGTH_BYTES)
    array.writeInt32BE(length, at)
    at += LENGTH_BYTES + Math.max(length, 0)
  }
  return array
}

/**
 * A `bigint[]`.
 *
 * @throws RangeError where a figure does not fit 64 bits.
 */
export function bigintArray(figures: readonly (bigint | number)[]): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + figures.length * (LENGTH_BYTES + INT8_BYTES))
  let at = writeHeader(array, INT8, figures.length)
  for (const figure of figures) {
    array.writeInt32BE(INT8_BYTES, at)
    array.writeBigInt64BE(BigInt(figure), at + LENGTH_BYTES)
    at += LENGTH_BYTES + INT8_BYTES
  }
  return array
}

function writeHeader(array: Buffer, type: number, length: number): number {
  array.writeInt32BE(1, 0) // dimensions
  array.writeInt32BE(1, 4) // null may be among them
  array.writeInt32BE(type, 8)
  array.writeInt32BE(length, 12)
  array.writeInt32BE(1, 16) // index of the first
  return HEADER_BYTES
}

function encodeNullable(text: string | null): string | null {
  return text === null ? null : encodeText(text)
}
