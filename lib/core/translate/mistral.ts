import { hash } from 'node:crypto'
import type { Line } from '../catalog/index.ts'
import { isJsonObject, type JsonObject, objectsIn } from '../json/index.ts'
import { UniqueLineIds } from './tool-ids.ts'

const NAME = /\bmistral\b/i

/** Whether a line is Mistral's, by its provider or host. */
export function isMistral({ provider, origin }: Pick<Line, 'provider' | 'origin'>): boolean {
  return NAME.test(provider) || NAME.test(origin)
}

const ID_LENGTH = 9

/** The ids of tool calls that Mistral accepts, and makes. */
const ID = /^[a-zA-Z0-9]{9}$/

/** Whether a request of any protocol may have tool calls in its conversation. */
export function hasToolCalls({ raw }: { readonly raw: Buffer }): boolean {
  return raw.includes('"tool_') || raw.includes('"call_id"')
}

function idFrom(id: string): string {
  return hash('sha256', id, 'base64').replaceAll(/[+/]/g, '').slice(0, ID_LENGTH)
}

/**
 * Returns a chat with ids of tool calls that Mistral accepts: its own as they are, others replaced by ones that are derived
 * from them. A result gets the id of its call.
 */
export function chatWithMistralIds(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages) || !messages.some(isOfTools)) return json
  const ids = new UniqueLineIds(ID, idFrom)
  return {
    ...json,
    messages: messages.map((message) => (isOfTools(message) ? withIds(message, ids) : message)),
  }
}

function isOfTools(message: unknown): message is JsonObject {
  return isJsonObject(message) && (Array.isArray(message.tool_calls) || message.tool_call_id !== undefined)
}

function withIds(message: JsonObject, ids: UniqueLineIds): JsonObject {
  const { tool_calls: calls, tool_call_id: result } = message
  if (typeof result === 'string') return { ...message, tool_call_id: ids.idOfResult(result) }
  if (!Array.isArray(calls)) return message
  ids.beginTurn()
  const own = objectsIn(calls).map((call) =>
    typeof call.id === 'string' ? { ...call, id: ids.idOfCall(call.id) } : call,
  )
  return own.length === calls.length ? { ...message, tool_calls: own } : message
}
