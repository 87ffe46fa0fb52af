import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { isOwnDetail } from '../parts/reasoning-details.ts'

/** Removes the thinking of Anthropic-style lines, which OpenAI-style lines refuse. */
export function chatWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return {
    ...json,
    messages: messages.map((message) => (isJsonObject(message) ? cleanMessage(message) : message)),
  }
}

function cleanMessage(message: JsonObject): JsonObject {
  const { reasoning_details: details, reasoning_content: _, ...rest } = message
  return objectsIn(details).some(isOwnDetail) ? rest : message
}
