const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
/** Strings longer than this are skipped by a native search instead of byte by byte. */
const SHORT_STRING = 48

/** One member of a JSON object, as byte offsets into its text. */
export class JsonMember {
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
    const text = this.#raw.toString('utf8', this.keyStart, this.#keyEnd)
    return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1)
  }

  /** Whether that is its key. No text is made of it, as a rule. */
  is(name: string): boolean {
    const raw = this.#raw
    const start = this.keyStart + 1
    const length = this.#keyEnd - 1 - start
    let same = length === name.length
    for (let i = 0; i < length; i++) {
      const byte = raw[start + i] as number
      if (byte === BACKSLASH || byte > 0x7f) return this.key === name
      if (byte !== name.charCodeAt(i)) same = false
    }
    return same
  }
}

/**
 * Finds the members of the object that `raw` holds without reading the values. `raw` must be valid JSON whose top
 * level is an object, as `JSON.parse` has already established.
 */
export function topLevelMembers(raw: Buffer): JsonMember[] {
  const members: JsonMember[] = []
  let at = skipSpace(raw, raw.indexOf(OPEN_BRACE) + 1)
  while (raw[at] === QUOTE) {
    const keyStart = at
    const keyEnd = endOfString(raw, at)
    at = skipSpace(raw, keyEnd)
    if (raw[at] !== COLON) break
    const valueStart = skipSpace(raw, at + 1)
    const valueEnd = endOfValue(raw, valueStart)
    members.push(new JsonMember(raw, keyStart, keyEnd, valueStart, valueEnd))
    at = skipSpace(raw, valueEnd)
    if (raw[at] !== COMMA) break
    at = skipSpace(raw, at + 1)
  }
  return members
}

function skipSpace(raw: Buffer, from: number): number {
  let at = from
  for (let byte = raw[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = raw[at])
    at++
  return at
}

/** The offset behind the string that begins at `start`. */
function endOfString(raw: Buffer, start: number): number {
  let at = start + 1
  const near = Math.min(raw.length, at + SHORT_STRING)
  while (at < near) {
    const byte = raw[at]
    if (byte === QUOTE) return at + 1
    at += byte === BACKSLASH ? 2 : 1
  }
  for (;;) {
    const quote = raw.indexOf(QUOTE, at)
    if (quote < 0) return raw.length
    let backslashes = 0
    while (quote - 1 - backslashes >= at && raw[quote - 1 - backslashes] === BACKSLASH) backslashes++
    at = quote + 1
    if (backslashes % 2 === 0) return at
  }
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

/** The raw text of one top-level member's value; the last one wins, as it does in `JSON.parse`. */
export function memberText(raw: Buffer, key: string): string | undefined {
  const member = topLevelMembers(raw).findLast((candidate) => candidate.is(key))
  return member && raw.toString('utf8', member.valueStart, member.valueEnd)
}
