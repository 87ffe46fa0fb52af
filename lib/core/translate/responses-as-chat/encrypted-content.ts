import {
  type JsonObject,
  type JsonTally,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../../json/index.ts'
import type { ReasoningMember } from '../parts/reasoning-details.ts'

/** Marks the `encrypted_content` that this gateway made. */
const MARK = 'reasoning_details:'

/** What a reasoning item needs beside its text to be translated back. */
export interface EncodedReasoning {
  readonly details: readonly JsonObject[]
  /** The member of the chat that held the text. */
  readonly member: ReasoningMember
  /** The text, for callers that send back nothing else; empty where it is not sealed. */
  readonly text: string
}

/**
 * Returns these as `encrypted_content` of a response, which callers send back unread. It is encoded, not
 * encrypted. Returns nothing if the text alone is enough.
 */
export function encodeReasoning({ details, member, text }: EncodedReasoning): { encrypted_content?: string } {
  if (details.length === 0 && member === 'reasoning_content' && text === '') return {}
  const json = JSON.stringify({ details, member, ...(text !== '' && { text }) })
  return { encrypted_content: MARK + Buffer.from(json).toString('base64') }
}

/**
 * Decodes what {@link encodeReasoning} encoded; for anything else it returns no details and no text.
 *
 * @param tally what the contents of the same request have come to.
 */
export function decodeReasoning(content: unknown, tally: JsonTally): EncodedReasoning {
  const isOwn = typeof content === 'string' && content.startsWith(MARK)
  const decoded = isOwn
    ? parseJsonObject(Buffer.from(content.slice(MARK.length), 'base64').toString(), tally)
    : undefined
  return {
    details: objectsIn(decoded?.details),
    member: decoded?.member === 'reasoning' ? 'reasoning' : 'reasoning_content',
    text: nonEmptyString(decoded?.text) ?? '',
  }
}
