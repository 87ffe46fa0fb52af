import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { endOfString, QUOTE } from './json-text.ts'
import { setMember } from './json-values.ts'
import { withoutLoneSurrogates } from './lone-surrogates.ts'
import { parseExactly } from './parse-json.ts'

/** The functions of `JSON` that its types lack. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

/** Whether a value stands for an integer that no number can hold. */
export const isKeptInteger = isRawJSON

/** Stands before an integer while a text is parsed. It is secret, so that no string of a caller is taken for one. */
const MARK = `${randomUUID()}:`

/** Whether a text may hold an integer that a number cannot. */
const CANDIDATE = /[:,[]\s*-?\d{16}/
const MIN_LENGTH = 16
const INTEGER = /^-?[1-9]\d{15,}$/

/**
 * A text with more such integers, or with more bytes outside of strings, is parsed as any other: it is data rather than the
 * arguments of tools, and to write it twice would hold up everybody else.
 */
const MAX_KEPT = 1000
const MAX_BARE_BYTES = 512 * 1024

const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39

/**
 * Parses JSON as {@link parseExactly}, but a member or item that is an integer that no number can hold becomes an object
 * that `JSON.stringify` writes as the integer was written.
 *
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseKeepingIntegers(text: string): unknown {
  const written = CANDIDATE.test(text) ? marked(Buffer.from(text)) : undefined
  return written === undefined ? parseExactly(text) : restored(parseExactly(written))
}

/**
 * Returns a parsed text as {@link parseKeepingIntegers} does. The text is parsed again only if it has such integers.
 *
 * @param raw the bytes of the text.
 */
export function keepingIntegers(json: unknown, raw: Buffer): unknown {
  const written = CANDIDATE.test(raw.toString('latin1')) ? marked(raw) : undefined
  return written === undefined ? json : withoutLoneSurrogates(restored(parseExactly(written)))
}

/** Writes each integer that a number cannot hold as a string with the mark; undefined if there are none, or too many. */
function marked(raw: Buffer): string | undefined {
  let text = ''
  let copied = 0
  let kept = 0
  let bare = 0
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at] as number
    if (byte === QUOTE) {
      at = endOfString(raw, at)
      continue
    }
    const start = at
    at++
    if (byte === MINUS || isDigit(byte)) while (at < raw.length && isOfNumber(raw[at] as number)) at++
    bare += at - start
    if (bare > MAX_BARE_BYTES) return undefined
    if (at - start < MIN_LENGTH) continue
    const number = raw.toString('latin1', start, at)
    if (!INTEGER.test(number) || String(Number(number)) === number) continue
    if (++kept > MAX_KEPT) return undefined
    text += `${raw.toString('utf8', copied, start)}"${MARK}${number}"`
    copied = at
  }
  return kept === 0 ? undefined : text + raw.toString('utf8', copied)
}

const isDigit = (byte: number): boolean => byte >= ZERO && byte <= NINE

/** Whether a byte may stand in a number: a digit, `+`, `-`, `.`, `e` or `E`. */
const isOfNumber = (byte: number): boolean =>
  isDigit(byte) || byte === MINUS || byte === 0x2b || byte === 0x2e || (byte | 0x20) === 0x65

/** Changes what it is given; use what it returns. */
function restored(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? rawJSON(value.slice(MARK.length)) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = restored(value[i])
    return value
  }
  for (const [name, member] of Object.entries(value)) {
    const next = restored(member)
    if (next !== member) setMember(value as Record<string, unknown>, name, next)
  }
  return value
}
