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
export interface JsonMember {
  readonly key: string
  readonly keyStart: number
  readonly valueStart: number
  readonly valueEnd: number
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
    const key = keyOf(raw, keyStart, keyEnd)
    at = skipSpace(raw, keyEnd)
    if (raw[at] !== COLON) break
    const valueStart = skipSpace(raw, at + 1)
    const valueEnd = endOfValue(raw, valueStart)
    members.push({ key, keyStart, valueStart, valueEnd })
    at = skipSpace(raw, valueEnd)
    if (raw[at] !== COMMA) break
    at = skipSpace(raw, at + 1)
  }
  return members
}

function keyOf(raw: Buffer, start: number, end: number): string {
  const text = raw.toString('utf8', start, end)
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1)
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

/** Changes to the members of an object: a new value as JSON text, or `null` to take the member away. */
export type MemberEdits = Readonly<Record<string, string | null>>

/**
 * The same text with some top-level members replaced, taken away or added; every other byte stays as it is. A member
 * that stands twice is edited twice, so that no reader of duplicates sees the old value.
 */
export function editMembers(raw: Buffer, edits: MemberEdits): Buffer {
  if (Object.keys(edits).length === 0) return raw
  const members = topLevelMembers(raw)
  const pieces: Buffer[] = []
  const seen = new Set<string>()
  let copied = 0
  const cut = (from: number, to: number, text?: string): void => {
    pieces.push(raw.subarray(copied, from))
    if (text !== undefined) pieces.push(Buffer.from(text))
    copied = to
  }
  const removed = (member: JsonMember | undefined): boolean =>
    member !== undefined && editOf(edits, member.key) === null
  let lastKept: JsonMember | undefined
  for (let i = 0; i < members.length; i++) {
    const member = members[i] as JsonMember
    if (!removed(member)) {
      lastKept = member
      const text = editOf(edits, member.key)
      if (typeof text !== 'string') continue
      seen.add(member.key)
      cut(member.valueStart, member.valueEnd, text)
      continue
    }
    let end = i
    while (removed(members[end + 1])) end++
    const next = members[end + 1]
    const from = next || !lastKept ? member.keyStart : lastKept.valueEnd
    cut(from, next ? next.keyStart : (members[end] as JsonMember).valueEnd)
    i = end
  }
  const added = Object.entries(edits).filter(([key, text]) => text !== null && !seen.has(key))
  if (added.length > 0) {
    const at = Math.max(copied, lastKept ? lastKept.valueEnd : raw.indexOf(OPEN_BRACE) + 1)
    const text = added.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')
    cut(at, at, lastKept ? `,${text}` : text)
  }
  pieces.push(raw.subarray(copied))
  return Buffer.concat(pieces)
}

function editOf(edits: MemberEdits, key: string): string | null | undefined {
  return Object.hasOwn(edits, key) ? edits[key] : undefined
}

/** The raw text of one top-level member's value; the last one wins, as it does in `JSON.parse`. */
export function memberText(raw: Buffer, key: string): string | undefined {
  const member = topLevelMembers(raw).findLast((candidate) => candidate.key === key)
  return member && raw.toString('utf8', member.valueStart, member.valueEnd)
}
