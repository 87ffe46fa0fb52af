import { Buffer, isAscii } from 'node:buffer'
import { endOfString, OPEN_BRACE, QUOTE } from './json-text.ts'

// The kinds of bytes outside of strings.
/** A number, a word, a colon; or what no JSON has. */
const PLAIN = 0
const SPACE = 1
const TEXT = 2
const SEPARATOR = 3
const OPEN = 4
const CLOSE = 5

const KIND = new Uint8Array(256).fill(PLAIN)
for (const [bytes, kind] of [
  [' \t\r\n', SPACE],
  ['"', TEXT],
  [',', SEPARATOR],
  ['[{', OPEN],
  [']}', CLOSE],
] as const)
  for (const byte of Buffer.from(bytes)) KIND[byte] = kind

/** The most levels of objects and lists in each other. */
const MAX_DEPTH = 128
/** The most values: objects, lists and what is in them. */
const MAX_VALUES = 500_000
/** The most members of one object, repeated ones counted each time. */
const MAX_MEMBERS = 10_000
/** The most members of all objects together. A member costs a parser up to fifty times what an item of a list does. */
const MAX_MEMBERS_IN_ALL = 100_000

/** A member takes four bytes or more, so no shorter text has too many of them, or of values. */
const FEW_MEMBERS = 4 * MAX_MEMBERS
/** The bit in which "[" and "{" differ. */
const CASE_BIT = 0x20

/** No shorter text can break a bound, but one that never closes what it opens, which parsers refuse at once. */
export const SURELY_WITHIN = 2 * (MAX_DEPTH + 1)

/** The number of values and members in all texts of one request. */
export interface JsonTally {
  values: number
  members: number
}

/** Returns the tally of a request of which nothing has been read yet. */
export function newTally(): JsonTally {
  return { values: 0, members: 0 }
}

/**
 * Returns what is too large about a JSON text, found without parsing it: parsers make an object of each value, which
 * takes far longer than to read its bytes. Returns undefined for a text that may be parsed; it need not be valid.
 *
 * @param tally the total of earlier texts of the same request; this text is added to it.
 */
export function jsonExcess(raw: Buffer, tally?: JsonTally): string | undefined {
  if (!tally && raw.length < FEW_MEMBERS) {
    // Such a text can only be nested too deeply, which takes many brackets.
    let brackets = 0
    for (let i = 0; i < raw.length; i++) if (((raw[i] as number) | CASE_BIT) === OPEN_BRACE) brackets++
    if (brackets <= MAX_DEPTH) return undefined
  }
  let values = (tally?.values ?? 0) + 1
  let members = tally?.members ?? 0
  /** The members of each container around the innermost one; -1 for a list. */
  const open: number[] = []
  /** The members of the innermost container; -1 if that is a list. */
  let own = -1
  /** Whether the innermost container has just been opened. */
  let fresh = false
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at] as number
    const kind = KIND[byte] as number
    if (kind === TEXT) at = endOfString(raw, at)
    else {
      at++
      // A stretch of bytes of one of these kinds counts as one.
      if (kind < TEXT) while (at < raw.length && KIND[raw[at] as number] === kind) at++
    }
    if (kind === SPACE) continue
    if (fresh && kind !== CLOSE) {
      values++
      if (own === 0) {
        own = 1
        members++
      }
    }
    fresh = false
    if (kind === SEPARATOR) {
      values++
      if (own >= 0) {
        members++
        if (++own > MAX_MEMBERS) return `An object of the body has more than ${MAX_MEMBERS} members.`
      }
    } else if (kind === OPEN) {
      if (open.length === MAX_DEPTH) return `The body is nested more than ${MAX_DEPTH} levels deep.`
      open.push(own)
      own = byte === OPEN_BRACE ? 0 : -1
      fresh = true
    } else if (kind === CLOSE) own = open.pop() ?? own
    if (values > MAX_VALUES) return `The body has more than ${MAX_VALUES} values.`
    if (members > MAX_MEMBERS_IN_ALL) return `The body has more than ${MAX_MEMBERS_IN_ALL} members.`
  }
  if (tally) {
    tally.values = values
    tally.members = members
  }
  return undefined
}

/** A value takes an object of this size. */
const VALUE_BYTES = 64
/** Shorter strings are taken for wide ones. */
const LONG = 1024
/** A shorter text is not worth being read once more: all its strings are taken for wide ones. */
const SHORT_TEXT = 1024 * 1024

/**
 * Returns the most memory that a JSON text takes when it is parsed. A string takes one byte for each of its own, as images in base64 do,
 * or two if it has a wide character: a whole file must not count twice for a word beside it.
 */
export function parsedBytes(raw: Buffer, values: number): number {
  const bytes = VALUE_BYTES * values + raw.length
  if (raw.length <= SHORT_TEXT) return bytes + raw.length
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
