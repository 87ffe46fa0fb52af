import { Buffer } from 'node:buffer'
import { type JsonTally, jsonExcess, SURELY_WITHIN } from './json-bounds.ts'
import { withoutLoneSurrogates } from './well-formed.ts'
import { withoutMember } from './without-member.ts'

/** A JSON object: a body, or any part of one. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value is an object and no array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects of an array; an empty list for anything else. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
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
 */
export function parseJsonObject(text: string, tally?: JsonTally): JsonObject | undefined {
  const raw = Buffer.from(text)
  if (jsonExcess(raw, tally) !== undefined) return undefined
  const value = raw.length > LARGE ? withoutLoneSurrogates(parsed(text), raw) : parsed(text)
  return isJsonObject(value) ? value : undefined
}

/**
 * A member of answers that the gateway reads nothing of. It takes hundreds of values for each token, and alone may exceed
 * what is parsed at once.
 */
const UNREAD = 'logprobs'

/**
 * Parses a text as JSON. Returns undefined if it is not valid, or too large to be parsed ({@link jsonExcess}); a text that
 * is too large for its log probabilities is parsed without them.
 *
 * @param raw the bytes of the text, if they are at hand.
 */
export function parseJson(text: string, raw?: Buffer): unknown {
  if (text.length < SURELY_WITHIN) return parsed(text)
  const bytes = raw ?? Buffer.from(text)
  if (jsonExcess(bytes) === undefined) return parsed(text)
  const less = withoutMember(bytes, UNREAD)
  return jsonExcess(less) === undefined ? parsed(less.toString()) : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
