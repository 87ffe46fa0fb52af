import { hash } from 'node:crypto'
import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  nonEmptyString,
  parseJsonObject,
} from '../../json/index.ts'

/** The ids that every protocol accepts; OpenAI's length limit is the smallest. */
const COMMON_ID = /^[a-zA-Z0-9_-]{1,40}$/

/**
 * Returns the id of a tool call in a form that both protocols accept: mostly the id itself, else one that is derived from
 * it. It is the same in every place and process, so that a call and its result keep the same id.
 */
export function toolId(id: string): string {
  const [plain = ''] = id.split(SEAL, 1)
  return COMMON_ID.test(plain) ? plain : `call_${hash('sha256', plain).slice(0, 32)}`
}

/** Separates the id of a tool call from what its line wants back with the call. */
export const SEAL = '__sealed__'

const MAX_SEALED_LENGTH = 64 * 1024

/**
 * Adds the `extra_content` of a chat's tool call to its id, such as Gemini's `thought_signature`, without which Gemini
 * refuses the result. Callers of other protocols have no member for it, and return the id unread.
 */
export function sealedToolId(id: string, extra: unknown): string {
  if (!isJsonObject(extra)) return id
  const sealed = Buffer.from(JSON.stringify(extra)).toString('base64url')
  return sealed.length > MAX_SEALED_LENGTH ? id : `${id}${SEAL}${sealed}`
}

export function isSealed(id: unknown): id is string {
  return typeof id === 'string' && id.includes(SEAL)
}

/**
 * Returns the `extra_content` that {@link sealedToolId} added, as a member of the tool call; nothing if there is none.
 *
 * @param tally what the ids of the same request have come to.
 */
export function sealOf(id: string, tally: JsonTally): { extra_content?: JsonObject } {
  const at = id.indexOf(SEAL)
  if (at < 0) return {}
  const extra = parseJsonObject(Buffer.from(id.slice(at + SEAL.length), 'base64url').toString(), tally)
  return extra ? { extra_content: extra } : {}
}

/**
 * Returns the id of a tool call in an answer. Some upstreams send none; the caller needs one to send the result back.
 *
 * @param index the position of the call in the answer.
 */
export function toolIdInAnswer(id: unknown, answerId: unknown, index: number): string {
  return toolId(nonEmptyString(id) ?? `${String(answerId)}:${index}`)
}
