import { Buffer } from 'node:buffer'

/** The bytes of a JSON text that its readers look for. */
export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const BACKSLASH = 0x5c
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** The first bytes of a string are read one by one. From there on it is searched natively, which pays only in long strings. */
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

/** The longest notation of an ASCII character: a \\u and four digits. */
const ESCAPED_LENGTH = 6

/** A member of the object in a text, as byte offsets into the text. */
export class MemberText {
  readonly #raw: Buffer
  readonly keyStart: number
  readonly #keyEnd: number
  readonly valueStart: number
  readonly valueEnd: number

  constructor(raw: Buffer, keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) {
    this.#raw = raw
    this.keyStart = keyStart
    this.#keyEnd = keyEnd
    this.valueStart = valueStart
    this.valueEnd = valueEnd
  }

  get key(): string {
    return JSON.parse(this.#raw.toString('utf8', this.keyStart, this.#keyEnd)) as string
  }

  /** Whether the key of the member is `name`. Usually compares without creating a string. */
  is(name: string): boolean {
    const raw = this.#raw
    const start = this.keyStart + 1
    const length = this.#keyEnd - 1 - start
    // Too long even if each character were written as an escape.
    if (length > ESCAPED_LENGTH * name.length) return false
    let same = length === name.length
    for (let i = 0; i < length; i++) {
      const byte = raw[start + i] as number
      if (byte === BACKSLASH || byte > 0x7f) return this.key === name
      if (byte !== name.charCodeAt(i)) same = false
    }
    return same
  }

  /** Whether the value is written exactly as this ASCII text. Compares without creating a string. */
  reads(text: string): boolean {
    if (this.valueEnd - this.valueStart !== text.length) return false
    for (let i = 0; i < text.length; i++) {
      const byte = this.#raw[this.valueStart + i] as number
      if (byte > 0x7f || byte !== text.charCodeAt(i)) return false
    }
    return true
  }
}

/** The members of long texts: a request is asked for several of them, and edited for each line that it is sent to. */
const membersOfLong = new WeakMap<Buffer, readonly MemberText[]>()
const LONG_BYTES = 16 * 1024
/** No request that makes sense has more, and what is kept of an object of very many would take more memory than its text. */
const MOST_KEPT = 100

/**
 * Returns the members of the object in a text, without parsing their values.
 *
 * @param raw valid JSON whose top level is an object. Of another text, the members before its first fault are returned, of which there
 *   are no more than commas.
 * @example
 * for (const member of membersOf(raw))
 *   if (member.is('model')) console.log(raw.toString('utf8', member.valueStart, member.valueEnd))
 */
export function membersOf(raw: Buffer): readonly MemberText[] {
  if (raw.length < LONG_BYTES) return foundMembers(raw)
  const known = membersOfLong.get(raw)
  if (known) return known
  const members = foundMembers(raw)
  if (members.length <= MOST_KEPT) membersOfLong.set(raw, members)
  return members
}

function foundMembers(raw: Buffer): MemberText[] {
  const members: MemberText[] = []
  let at = skipSpace(raw, raw.indexOf(OPEN_BRACE) + 1)
  while (raw[at] === QUOTE) {
    const keyEnd = endOfString(raw, at)
    const colon = skipSpace(raw, keyEnd)
    if (raw[colon] !== COLON) break
    const valueStart = skipSpace(raw, colon + 1)
    const valueEnd = endOfValue(raw, valueStart)
    members.push(new MemberText(raw, at, keyEnd, valueStart, valueEnd))
    const behind = skipSpace(raw, valueEnd)
    if (raw[behind] !== COMMA) break
    at = skipSpace(raw, behind + 1)
  }
  return members
}

export function skipSpace(raw: Buffer, from: number): number {
  let at = from
  for (let byte = raw[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = raw[at])
    at++
  return at
}

export function endOfValue(raw: Buffer, start: number): number {
  const first = raw[start]
  if (first === QUOTE) return endOfString(raw, start)
  if (isOpening(first)) return endOfContainer(raw, start)
  let at = start
  for (
    let byte = raw[at];
    byte !== undefined && byte !== COMMA && byte !== CLOSE_BRACE && byte > 0x20;
    byte = raw[at]
  )
    at++
  return at
}

function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET
}

/** Returns the offset behind the list or object that begins at `start`; the length of the text if it does not end. */
function endOfContainer(raw: Buffer, start: number): number {
  let depth = 0
  let at = start
  while (at < raw.length) {
    const byte = raw[at]
    if (byte === QUOTE) {
      at = endOfString(raw, at)
      continue
    }
    at++
    if (isOpening(byte)) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at
  }
  return at
}

/** Returns the raw text of a top-level member's value. Of duplicates it returns the last, as `JSON.parse` does. */
export function memberText(raw: Buffer, key: string): string | undefined {
  const member = membersOf(raw).findLast((each) => each.is(key))
  return member && raw.toString('utf8', member.valueStart, member.valueEnd)
}

/** Changes of an object's members: a new value as JSON text, or `null` to remove the member. */
export type MemberEdits = Readonly<Record<string, string | null>>

/**
 * Replaces, removes or adds top-level members; all other bytes stay as they are. A member that occurs twice is changed
 * twice, so that no reader of duplicates sees the old value.
 *
 * @param raw valid JSON whose top level is an object.
 */
export function editMembers(raw: Buffer, edits: MemberEdits): Buffer {
  const cuts: Cut[] = []
  let replaced: string[] | undefined
  let keptEnd = -1
  let removedStart = -1
  let removedEnd = -1
  for (const member of membersOf(raw)) {
    let name: string | undefined
    for (const edited in edits) if (member.is(edited)) name = edited
    const text = name === undefined ? undefined : edits[name]
    if (text === null) {
      if (removedStart < 0) removedStart = member.keyStart
      removedEnd = member.valueEnd
      continue
    }
    if (removedStart >= 0) cuts.push({ from: removedStart, to: member.keyStart, text: '' })
    removedStart = -1
    keptEnd = member.valueEnd
    if (name === undefined || text === undefined) continue
    if (!replaced) replaced = [name]
    else if (!replaced.includes(name)) replaced.push(name)
    if (!member.reads(text)) cuts.push({ from: member.valueStart, to: member.valueEnd, text })
  }
  if (removedStart >= 0) cuts.push({ from: keptEnd < 0 ? removedStart : keptEnd, to: removedEnd, text: '' })
  for (const name in edits) {
    if (edits[name] === null || replaced?.includes(name)) continue
    // Behind the last member that is kept and behind all cuts, for what is cut last may be what followed it.
    const place = Math.max(keptEnd < 0 ? raw.indexOf('{') + 1 : keptEnd, cuts.at(-1)?.to ?? 0)
    const text = `${keptEnd < 0 ? '' : ','}${JSON.stringify(name)}:${edits[name]}`
    cuts.push({ from: place, to: place, text })
    keptEnd = Math.max(keptEnd, 0)
  }
  return cuts.length === 0 ? raw : patched(raw, cuts)
}

/** A piece of a text that is taken out, and what takes its place. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * One copy, however many cuts there are.
 *
 * @param cuts from front to back.
 */
function patched(raw: Buffer, cuts: readonly Cut[]): Buffer {
  let size = raw.length
  for (const { from, to, text } of cuts) size += Buffer.byteLength(text) - (to - from)
  const copy = Buffer.allocUnsafe(size)
  let written = 0
  let copied = 0
  for (const { from, to, text } of cuts) {
    written += raw.copy(copy, written, copied, from)
    written += copy.write(text, written)
    copied = to
  }
  raw.copy(copy, written, copied)
  return copy
}

/** Returns a JSON text with null for each list or object that is a member of this name, without parsing it. */
export function withoutMember(raw: Buffer, name: string): Buffer {
  const quoted = Buffer.from(JSON.stringify(name))
  const kept: Buffer[] = []
  let from = 0
  for (let at = raw.indexOf(QUOTE); at >= 0; at = raw.indexOf(QUOTE, at)) {
    const end = endOfString(raw, at)
    const isNamed = end - at === quoted.length && quoted.compare(raw, at, end) === 0
    at = end
    if (!isNamed) continue
    const colon = skipSpace(raw, end)
    const value = skipSpace(raw, colon + 1)
    if (raw[colon] !== COLON || !isOpening(raw[value])) continue
    kept.push(raw.subarray(from, value), Buffer.from('null'))
    at = endOfContainer(raw, value)
    from = at
  }
  return from === 0 ? raw : Buffer.concat([...kept, raw.subarray(from)])
}
