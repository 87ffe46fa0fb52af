import type { Cell, CellType } from '../columns.ts'

/*
 * Converts values to and from Postgres, so that a program sees the same as with SQLite.
 */

/** Object ids of types in the table `pg_type`. */
const INT8 = 20
const TEXT = 25
const BPCHAR = 1042
const VARCHAR = 1043
const NUMERIC = 1700

type Parser = (text: string) => unknown

/** `bigint` columns, counts and whole sums are read as bigint; averages and other fractions as number. */
export const PARSERS: ReadonlyMap<number, Parser> = new Map<number, Parser>([
  [INT8, BigInt],
  [NUMERIC, parseNumeric],
  [TEXT, decodeText],
  [BPCHAR, decodeText],
  [VARCHAR, decodeText],
])

function parseNumeric(text: string): bigint | number {
  return /^-?\d+$/.test(text) ? BigInt(text) : Number(text)
}

/*
 * Postgres has no text with U+0000 in it, and a caller may put one into what the call log keeps. It is written as the
 * symbol for it and a 0, and the symbol itself twice, so that every text comes back as it was and equal texts stay
 * equal.
 */
const NUL = '\0'
const SYMBOL = '\u2400'

/** Returns a parameter in a form that Postgres can store. */
export function encodeParameter(value: unknown): unknown {
  return typeof value === 'string' ? encodeText(value) : value
}

/** Returns a text in a form that Postgres can store. */
export function encodeText(text: string): string {
  if (!(text.includes(NUL) || text.includes(SYMBOL))) return text
  return text.replaceAll(SYMBOL, SYMBOL + SYMBOL).replaceAll(NUL, `${SYMBOL}0`)
}

function decodeText(text: string): string {
  if (!text.includes(SYMBOL)) return text
  return text.replaceAll(/\u2400([0\u2400])/g, (_, which: string) => (which === '0' ? NUL : SYMBOL))
}

/*
 * Arrays as Postgres sends and takes them in binary. A column of many rows is one parameter so, nothing in it is escaped,
 * and a statement's text is the same for any number of rows.
 */

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const INT8_BYTES = 8

type Rows = readonly (readonly Cell[])[]

/** Encodes the columns of rows, one array for each. */
export function arraysOf(columns: readonly CellType[], rows: Rows): Buffer[] {
  return columns.map((type, i) => (type === 'text' ? textArray(rows, i) : bigintArray(rows, i)))
}

function textArray(rows: Rows, column: number): Buffer {
  const texts: (string | null)[] = []
  let size = HEADER_BYTES
  for (const row of rows) {
    const cell = row[column]
    const text = cell === null ? null : encodeText(String(cell))
    size += LENGTH_BYTES + (text === null ? 0 : Buffer.byteLength(text))
    texts.push(text)
  }
  const array = Buffer.allocUnsafe(size)
  let at = writeHeader(array, TEXT, rows.length)
  for (const text of texts) {
    const length = text === null ? -1 : array.write(text, at + LENGTH_BYTES)
    array.writeInt32BE(length, at)
    at += LENGTH_BYTES + Math.max(length, 0)
  }
  return array
}

/** @throws RangeError if a figure does not fit 64 bits. */
function bigintArray(rows: Rows, column: number): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + rows.length * (LENGTH_BYTES + INT8_BYTES))
  let at = writeHeader(array, INT8, rows.length)
  for (const row of rows) {
    const cell = row[column] ?? null
    array.writeInt32BE(cell === null ? -1 : INT8_BYTES, at)
    at += LENGTH_BYTES
    if (cell !== null) at = array.writeBigInt64BE(BigInt(cell), at)
  }
  return array.subarray(0, at)
}

function writeHeader(array: Buffer, type: number, length: number): number {
  array.writeInt32BE(1, 0) // dimensions
  array.writeInt32BE(1, 4) // null may be among them
  array.writeInt32BE(type, 8)
  array.writeInt32BE(length, 12)
  array.writeInt32BE(1, 16) // index of the first
  return HEADER_BYTES
}
