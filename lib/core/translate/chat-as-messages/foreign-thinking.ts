import { isObject, objectsIn } from '../parts/json-object.ts'
import { isOwnDetail } from '../parts/reasoning-details.ts'
import type { JsonObject } from '../translation.ts'

/** A chat without the thinking of Anthropic-style lines, as OpenAI-style lines take it. */
export function chatWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return { ...json, messages: messages.map((message) => (isObject(message) ? plain(message) : message)) }
}

function plain(message: JsonObject): JsonObject {
  const { reasoning_details: details, reasoning_content: _, ...rest } = message
  return objectsIn(details).some(isOwnDetail) ? rest : message
}
