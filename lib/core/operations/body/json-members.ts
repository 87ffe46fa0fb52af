import { endOfString } from '../../json/index.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** The longest notation of an ASCII character: a \\u and four digits. */
const ESCAPED_LENGTH = 6

/**
 * Iterates over the members of the object in a text without parsing their values. After each {@link next} that returns
 * true, it has the current member as byte offsets into the text.
 *
 * @example
 * const member = new MemberCursor(raw)
 * while (member.next()) if (member.is('model')) console.log(raw.toString('utf8', member.valueStart, member.valueEnd))
 */
export class MemberCursor {
  readonly #raw: Buffer
  #at: number
  keyStart = 0
  #keyEnd = 0
  valueStart = 0
  valueEnd = 0

  /** @param raw valid JSON whose top level is an object; `JSON.parse` must have accepted it. */
  constructor(raw: Buffer) {
    this.#raw = raw
    this.#at = skipSpace(raw, raw.indexOf(OPEN_BRACE) + 1)
  }

  /** Moves to the next member; returns false if there is none. */
  next(): boolean {
    const raw = this.#raw
    if (raw[this.#at] !== QUOTE) return false
    this.keyStart = this.#at
    this.#keyEnd = endOfString(raw, this.keyStart)
    // A colon stands between the two.
    this.valueStart = skipSpace(raw, skipSpace(raw, this.#keyEnd) + 1)
    this.valueEnd = endOfValue(raw, this.valueStart)
    const behind = skipSpace(raw, this.valueEnd)
    this.#at = raw[behind] === COMMA ? skipSpace(raw, behind + 1) : behind
    return true
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

function skipSpace(raw: Buffer, from: number): number {
  let at = from
  for (let byte = raw[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = raw[at])
    at++
  return at
}

function endOfValue(raw: Buffer, start: number): number {
  const first = raw[start]
  if (first === QUOTE) return endOfString(raw, start)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(raw, start)
  let at = start
  for (
    let byte = raw[at];
    byte !== undefined && byte !== COMMA && byte !== CLOSE_BRACE && byte > 0x20;
    byte = raw[at]
  )
    at++
  return at
}

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
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at
  }
  return at
}

/** Returns the raw text of a top-level member's value. Of duplicates it returns the last, as `JSON.parse` does. */
export function memberText(raw: Buffer, key: string): string | undefined {
  const member = new MemberCursor(raw)
  let [start, end] = [-1, -1]
  while (member.next()) if (member.is(key)) [start, end] = [member.valueStart, member.valueEnd]
  return start < 0 ? undefined : raw.toString('utf8', start, end)
}
