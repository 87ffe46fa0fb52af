import { isObject } from '../parts/json-object.ts'
import { memberOf, UNSIGNED } from '../parts/reasoning-details.ts'
import type { JsonObject } from '../translation.ts'

/** A conversation without the reasoning and the citations of OpenAI-style lines, which Anthropic-style lines refuse. */
export function messagesWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return { ...json, messages: messages.flatMap((turn) => (isObject(turn) ? plain(turn) : [turn])) }
}

function plain(turn: JsonObject): JsonObject[] {
  const { content } = turn
  if (!Array.isArray(content)) return [turn]
  const kept = content.filter((block) => !(isObject(block) && memberOf(block.signature)))
  // A turn that says nothing is refused too.
  if (kept.length === 0) return []
  return [{ ...turn, content: kept.map((block) => (isObject(block) ? uncited(block) : block)) }]
}

function uncited(block: JsonObject): JsonObject {
  const { citations, ...rest } = block
  if (!Array.isArray(citations)) return block
  const kept = citations.filter((citation) => !(isObject(citation) && citation.encrypted_index === UNSIGNED))
  if (kept.length === citations.length) return block
  return kept.length > 0 ? { ...rest, citations: kept } : rest
}
