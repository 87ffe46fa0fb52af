import { Buffer, isUtf8 } from 'node:buffer'
import { CLOSE_BRACE, COLON, OPEN_BRACE, QUOTE } from './bytes.ts'
import {
  endOfString,
  type JsonTally,
  jsonExcess,
  newTally,
  parseCounting,
  parseExactly,
  SURELY_WITHIN,
} from './json-text.ts'
import { withoutLoneSurrogates } from './well-formed.ts'
import { withoutMember } from './without-member.ts'

/** A JSON object: a body, or any part of one. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects of an array; an empty list for anything else. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns a string that is not empty, and undefined for anything else. */
export function nonEmptyString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * A count of tokens as an upstream reports it: a whole number that is exact and not negative. Anything else, a fraction
 * or a string included, says nothing that a charge could rest on, and counts as not reported.
 *
 * @example tokenCount(12) // 12
 * @example tokenCount('12') // undefined
 */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

/** The lone surrogates of a smaller text take a few milliseconds at most, wherever it is written again. */
const LARGE = 256 * 1024

/**
 * Parses a JSON object; returns undefined if the text is not JSON, holds another value, or is too large to be parsed
 * ({@link jsonExcess}).
 *
 * @param tally what the texts of the same request have come to.
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
    const value = raw.length > LARGE ? withoutLoneSurrogates(parsed, raw) : parsed
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

/** What is wrong with a body, in words for its caller. */
export class JsonFault extends Error {
  /** The member that stands twice, as a refusal names it; empty for other faults. */
  readonly named: { readonly param?: string }

  constructor(message: string, named: JsonFault['named'] = {}) {
    super(message)
    this.named = named
  }
}

/** Shared, because a scan is never interrupted. */
const tally = newTally()

/**
 * Parses the body of a request that others will read, too: what it says must not depend on who reads it. A member that
 * stands twice in an object could hide from the gateway what the upstream reads.
 *
 * @param take is called with the number of values before they take memory. It may throw.
 * @throws {JsonFault} if it is not UTF-8, too large to be parsed, not JSON, or has a member twice in an object.
 */
export function parseUnambiguous(raw: Buffer, take?: (values: number) => void): unknown {
  if (!isUtf8(raw)) throw new JsonFault('The request body is not valid UTF-8.')
  tally.values = 0
  tally.members = 0
  const excess = jsonExcess(raw, tally)
  if (excess !== undefined) throw new JsonFault(excess)
  take?.(tally.values)
  let parsed: ReturnType<typeof parseCounting>
  try {
    parsed = parseCounting(raw)
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
  const message = `${named} stands twice in the same object of the body. Send it once.`
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
