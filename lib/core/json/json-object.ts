import { Buffer } from 'node:buffer'
import { type JsonTally, jsonExcess } from './json-bounds.ts'

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

/**
 * Parses a JSON object; returns undefined if the text is not JSON, holds another value, or is too large to be parsed
 * ({@link jsonExcess}).
 *
 * @param tally what the texts of the same request have come to.
 */
export function parseJsonObject(text: string, tally?: JsonTally): JsonObject | undefined {
  if (jsonExcess(Buffer.from(text), tally) !== undefined) return undefined
  const value = parseJson(text)
  return isJsonObject(value) ? value : undefined
}

/** Parses a text as JSON; returns undefined if it is not valid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
