/*
 * What goes to Postgres and comes from it, so that a program sees what SQLite would show it.
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
