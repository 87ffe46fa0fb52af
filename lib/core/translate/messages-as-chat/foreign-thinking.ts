import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { memberOf, UNSIGNED } from '../parts/reasoning-details.ts'
import { isSealed, toolId } from '../parts/tool-ids.ts'

/** Removes what came from OpenAI-style lines and Anthropic-style lines refuse: reasoning, citations, and seals in ids of tools. */
export function messagesWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return { ...json, messages: messages.flatMap((turn) => (isJsonObject(turn) ? cleanTurn(turn) : [turn])) }
}

function cleanTurn(turn: JsonObject): JsonObject[] {
  const { content } = turn
  if (!Array.isArray(content)) return [turn]
  const blocks = content.filter((block) => !(isJsonObject(block) && memberOf(block.signature)))
  // An empty turn is refused too.
  if (blocks.length === 0) return []
  return [{ ...turn, content: blocks.map((block) => (isJsonObject(block) ? cleanBlock(block) : block)) }]
}

function cleanBlock(block: JsonObject): JsonObject {
  const { id, tool_use_id: result } = block
  if (isSealed(id)) return { ...block, id: toolId(id) }
  return isSealed(result) ? { ...block, tool_use_id: toolId(result) } : cleanCitations(block)
}

function cleanCitations(block: JsonObject): JsonObject {
  const { citations, ...rest } = block
  if (!Array.isArray(citations)) return block
  const signed = citations.filter(
    (citation) => !(isJsonObject(citation) && citation.encrypted_index === UNSIGNED),
  )
  if (signed.length === citations.length) return block
  return signed.length > 0 ? { ...rest, citations: signed } : rest
}
