import { objectsIn, parseObject } from '../json-object.ts'
import type { JsonObject } from '../translation.ts'

/** Tells what was sealed here from what an upstream sealed. */
const MARK = 'reasoning_details:'

/**
 * What a line wants to see again of its reasoning (`reasoning_details` of a chat), as a response's
 * `encrypted_content`: callers hand it back unread. It is not secret.
 */
export function seal(details: readonly JsonObject[]): string {
  return MARK + Buffer.from(JSON.stringify({ details })).toString('base64')
}

/** What {@link seal} was given; nothing for anything else. */
export function openSeal(sealed: unknown): readonly JsonObject[] {
  if (typeof sealed !== 'string' || !sealed.startsWith(MARK)) return []
  return objectsIn(parseObject(Buffer.from(sealed.slice(MARK.length), 'base64').toString())?.details)
}
