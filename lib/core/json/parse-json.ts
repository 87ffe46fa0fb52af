import { Buffer, isUtf8 } from 'node:buffer'
import { type JsonTally, jsonExcess, newTally, SURELY_WITHIN } from './json-bounds.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  COLON,
  COMMA,
  endOfString,
  OPEN_BRACE,
  QUOTE,
  withoutMember,
} from './json-text.ts'
import { isJsonObject, type JsonObject, setMember } from './json-values.ts'
import { withoutLoneSurrogates } from './lone-surrogates.ts'
import { parseInPieces } from './parse-in-pieces.ts'

/** The lone surrogates of a smaller text take a few milliseconds at most, wherever it is written again. */
const LARGE = 256 * 1024

/**
 * Parses a JSON object; returns undefined if the text is not JSON, holds another value, or is too large to be parsed
 * ({@link jsonExcess}).
 *
 * @param tally the total of the texts of the same request so far.
 * @param parse how a text is parsed. Defaults to {@link parseExactly}.
 */
export function parseJsonObject(
  text: string,
  tally?: JsonTally,
  parse: (text: string) => unknown = parseExactly,
): JsonObject | undefined {
  const raw = Buffer.from(text)
  if (jsonExcess(raw, tally) !== undefined) return undefined
  try {
    const parsed = parse(text)
    const value = raw.length > LARGE ? withoutLoneSurrogates(parsed) : parsed
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * A member of answers that the gateway reads nothing of. It takes hundreds of values for each token, and alone may exceed
 * what is parsed at once.
 */
const UNREAD = 'logprobs'

/**
 * Parses a text as JSON. Returns undefined if it is not valid, or too large to be parsed ({@link jsonExcess}); a text that
 * is too large for its log probabilities is parsed without them. A byte order mark before it is ignored, as clients do.
 *
 * @param raw the bytes of the text, if they are at hand.
 * @param parse how a text is parsed. Defaults to {@link parseExactly}.
 */
export function parseJson(
  text: string,
  raw?: Buffer,
  parse: (text: string) => unknown = parseExactly,
): unknown {
  let read = text
  if (text.length >= SURELY_WITHIN) {
    const bytes = raw ?? Buffer.from(text)
    if (jsonExcess(bytes) !== undefined) {
      const less = withoutMember(bytes, UNREAD)
      if (jsonExcess(less) !== undefined) return undefined
      read = less.toString()
    }
  }
  try {
    return parse(read.startsWith(BYTE_ORDER_MARK) ? read.slice(1) : read)
  } catch {
    return undefined
  }
}

const BYTE_ORDER_MARK = '\ufeff'

/** Returns the bytes of a text without its byte order mark. */
export function withoutMark(raw: Buffer): Buffer {
  return raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? raw.subarray(3) : raw
}

/** A fault of a JSON body, described for its caller. */
export class JsonFault extends Error {
  /** The member that stands twice, as a refusal names it; empty for other faults. */
  readonly named: { readonly param?: string }

  constructor(message: string, named: JsonFault['named'] = {}) {
    super(message)
    this.named = named
  }
}

/**
 * Parses the body of a request that others will read, too: what it says must not depend on who reads it. A member that
 * stands twice in an object could hide from the gateway what the upstream reads.
 *
 * @param take is called with the number of values before they take memory. It may throw.
 * @throws {JsonFault} if it is not UTF-8, too large to be parsed, not JSON, or has a member twice in an object.
 */
export function parseUnambiguous(raw: Buffer, take?: (values: number) => void): unknown {
  if (!isUtf8(raw)) throw new JsonFault('The request body is not valid UTF-8.')
  const tally = newTally()
  const excess = jsonExcess(raw, tally)
  if (excess !== undefined) throw new JsonFault(excess)
  take?.(tally.values)
  let parsed: ReturnType<typeof parseCounting>
  try {
    parsed = parseCounting(raw, tally.values)
  } catch {
    throw new JsonFault('The request body is not valid JSON.')
  }
  if (parsed.members !== tally.members) throw repeated(raw)
  return parsed.json
}

/** In a larger body, the member that stands twice is not looked for. */
const MAX_SEARCHED_BYTES = 64 * 1024

function repeated(raw: Buffer): JsonFault {
  const member = raw.length > MAX_SEARCHED_BYTES ? undefined : repeatedMember(raw)?.slice(0, 200)
  const named = member === undefined ? 'A member' : JSON.stringify(member)
  const message = `${named} occurs twice in the same object of the body. Send it once.`
  return new JsonFault(message, member === undefined ? {} : { param: member })
}

/** Returns the first name that an object of a valid JSON text has twice. */
function repeatedMember(raw: Buffer): string | undefined {
  const open: Set<string>[] = []
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at]
    if (byte !== QUOTE) {
      if (byte === OPEN_BRACE) open.push(new Set())
      else if (byte === CLOSE_BRACE) open.pop()
      at++
      continue
    }
    const end = endOfString(raw, at)
    const text = raw.toString('utf8', at, end)
    at = end
    while ((raw[at] ?? 0x21) <= 0x20) at++
    if (raw[at] !== COLON) continue
    const name = JSON.parse(text) as string
    if (open.at(-1)?.has(name)) return name
    open.at(-1)?.add(name)
  }
  return undefined
}

/** A longer string is copied natively. */
const LONG = 48

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

/** Of smaller values, such as lists of numbers, each takes longer than the memory of the text. */
const BYTES_OF_VALUES = 32

/**
 * Parses as {@link parseExactly}, and counts the members of all objects: a repeated one counts once.
 *
 * @param values how many the text has.
 */
function parseCounting(raw: Buffer, values: number): { readonly json: unknown; readonly members: number } {
  const json = raw.length > BYTES_OF_VALUES * values ? parseInPieces(raw) : JSON.parse(raw.toString())
  const names = { json, members: 0, backslash: false }
  tallyNames(json, names, raw.includes(BACKSLASH))
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
      if (end - at > LONG) to += raw.copy(lists, to, at, end)
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
