import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { TRANSLATED_SEARCH } from '../../operations/body/references.ts'
import { isSealed, toolId } from '../parts/tool-ids.ts'

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
  return isSealed(item.call_id) ? { ...item, call_id: toolId(item.call_id) } : item
}

/** Whether reasoning or a web search was made from a chat, by its id. */
export function isFromChat(id: unknown): boolean {
  return typeof id === 'string' && PREFIXES.some((prefix) => id.startsWith(prefix))
}
