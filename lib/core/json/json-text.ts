import { Buffer } from 'node:buffer'
import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, OPEN_BRACE, QUOTE } from './bytes.ts'

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
/** What the bytes of "[" and "{" differ in. */
const CASE_BIT = 0x20

/** No shorter text can break a bound, but one that never closes what it opens, which parsers refuse at once. */
export const SURELY_WITHIN = 2 * (MAX_DEPTH + 1)

/** The members of each open object so far; -1 for a list. It is shared, because a scan is never interrupted. */
const open = new Int32Array(MAX_DEPTH)

/** What the texts of one request have come to together. */
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
 * @param tally what earlier texts of the same request have come to; this text is added to it.
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
  let depth = 0
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
      if (depth === MAX_DEPTH) return `The body is nested more than ${MAX_DEPTH} levels deep.`
      open[depth++] = own
      own = byte === OPEN_BRACE ? 0 : -1
      fresh = true
    } else if (kind === CLOSE && depth > 0) own = open[--depth] as number
    if (values > MAX_VALUES) return `The body has more than ${MAX_VALUES} values.`
    if (members > MAX_MEMBERS_IN_ALL) return `The body has more than ${MAX_MEMBERS_IN_ALL} members.`
  }
  if (tally) {
    tally.values = values
    tally.members = members
  }
  return undefined
}

/** A string is read byte by byte for so long at first, and is searched natively from there on; a longer one is copied natively. */
const NEAR = 48

/** Returns the offset behind the string that begins at `start`; the length of the text if the string does not end. */
export function endOfString(raw: Buffer, start: number): number {
  let at = start + 1
  for (let stretch = NEAR; ; stretch *= 2) {
    const near = Math.min(raw.length, at + stretch)
    while (at < near) {
      const byte = raw[at]
      if (byte === QUOTE) return at + 1
      at += byte === BACKSLASH ? 2 : 1
    }
    if (at >= raw.length) return raw.length
    const quote = raw.indexOf(QUOTE, at)
    if (quote < 0) return raw.length
    let backslashes = 0
    while (quote - 1 - backslashes >= at && raw[quote - 1 - backslashes] === BACKSLASH) backslashes++
    at = quote + 1
    if (backslashes % 2 === 0) return at
    // An escaped quote. More of them may follow, and each would cost a native search.
  }
}

const BEGIN = [...Buffer.from('{"":[')]
const END = [...Buffer.from(']}')]

/**
 * Parses JSON as `JSON.parse` should. That of Node 24 takes a name with an escape for another one, if an object of an
 * earlier text, of anybody, had a name with a backslash at the same place: after `{"\\":1}` it reads `{"\u006e":1}` as the
 * former. Whatever it takes has a backslash, so a text without such names was read well.
 *
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseExactly(text: string): unknown {
  const json: unknown = JSON.parse(text)
  if (!text.includes('\\')) return json
  const names = { members: 0, backslash: false }
  tallyNames(json, names, true)
  return names.backslash ? parsedAsLists(Buffer.from(text)) : json
}

/** Parses as {@link parseExactly}, and counts the members of all objects: a repeated one counts once. */
export function parseCounting(raw: Buffer): { readonly json: unknown; readonly members: number } {
  const text = raw.toString()
  const json: unknown = JSON.parse(text)
  const names = { json, members: 0, backslash: false }
  tallyNames(json, names, text.includes('\\'))
  if (!names.backslash) return names
  const exact = { json: parsedAsLists(raw), members: 0, backslash: false }
  tallyNames(exact.json, exact, false)
  return exact
}

/**
 * Adds up the members of a value at every depth, which is bounded.
 *
 * @param escaped whether a name can have a backslash.
 */
function tallyNames(value: unknown, names: { members: number; backslash: boolean }, escaped: boolean): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++)
      if (typeof value[i] === 'object') tallyNames(value[i], names, escaped)
    return
  }
  for (const name in value) {
    names.members++
    if (escaped && name.includes('\\')) names.backslash = true
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object') tallyNames(member, names, escaped)
  }
}

function parsedAsLists(raw: Buffer): unknown {
  return fromLists(JSON.parse(asLists(raw).toString()))
}

/** Writes each object of a valid text as `{"":[name, value, …]}`: names that are values are read well. */
function asLists(raw: Buffer): Buffer {
  let braces = 0
  for (let at = 0; at < raw.length; at++) if (raw[at] === OPEN_BRACE) braces++
  const lists = Buffer.allocUnsafe(raw.length + braces * (BEGIN.length + END.length - 2))
  let to = 0
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at] as number
    if (byte === QUOTE) {
      const end = endOfString(raw, at)
      if (end - at > NEAR) to += raw.copy(lists, to, at, end)
      else for (let i = at; i < end; i++) lists[to++] = raw[i] as number
      at = end
      continue
    }
    at++
    if (byte === OPEN_BRACE) for (const each of BEGIN) lists[to++] = each
    else if (byte === CLOSE_BRACE) for (const each of END) lists[to++] = each
    else lists[to++] = byte === COLON ? COMMA : byte
  }
  return lists.subarray(0, to)
}

function fromLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = fromLists(value[i])
    return value
  }
  const list = (value as Record<'', unknown[]>)['']
  const object: Record<string, unknown> = {}
  for (let i = 0; i < list.length; i += 2) setMember(object, list[i] as string, fromLists(list[i + 1]))
  return object
}

/** Sets a member as `JSON.parse` does: an assignment to `__proto__` would change the prototype. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}
