import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../../json/index.ts'
import { TRANSLATED_SEARCH } from '../../operations/body/references.ts'
import type { ReasoningMember } from '../reasoning.ts'
import { plainToolId, RESPONSE_ID_LENGTH } from '../tool-ids.ts'

/** Marks the `encrypted_content` that this gateway made. */
const MARK = 'reasoning_details:'

/** The data that a reasoning item needs beside its text to be translated back. */
interface EncodedReasoning {
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
 * @param tally the total of the contents of the same request so far.
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

/** A text in the ids of items that were made from a chat. */
export const ITEM_MARK = '_resp_'

/** How the ids of items begin that lines would look up, and did not make. */
const PREFIXES = ['rs_resp_', TRANSLATED_SEARCH]

/** Removes the items that were made from a chat and that a line which stores responses would look up. */
export function responsesWithoutForeign(json: JsonObject): JsonObject {
  const { input } = json
  if (!Array.isArray(input)) return json
  const own = input.filter((item) => !(isJsonObject(item) && isFromChat(item.id)))
  return { ...json, input: own.map((item) => (isJsonObject(item) ? withPlainId(item) : item)) }
}

function withPlainId(item: JsonObject): JsonObject {
  const id = plainToolId(item.call_id, RESPONSE_ID_LENGTH)
  return id === item.call_id ? item : { ...item, call_id: id }
}

/** Whether reasoning or a web search was made from a chat, by its id. */
export function isFromChat(id: unknown): boolean {
  return typeof id === 'string' && PREFIXES.some((prefix) => id.startsWith(prefix))
}
