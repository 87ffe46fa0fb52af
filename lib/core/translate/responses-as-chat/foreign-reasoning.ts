import { isObject } from '../parts/json-object.ts'
import type { JsonObject } from '../translation.ts'

/** What the id of every reasoning item begins with that was made of a chat. */
export const ITEM_PREFIX = 'rs_resp_'

/** An input without the reasoning that was made of a chat: who keeps responses knows no such item. */
export function responsesWithoutForeign(json: JsonObject): JsonObject {
  const { input } = json
  if (!Array.isArray(input)) return json
  return { ...json, input: input.filter((item) => !isForeign(item)) }
}

function isForeign(item: unknown): boolean {
  return isObject(item) && isOfChat(item.id)
}

/** Whether an item was made of a chat, by its id. */
export function isOfChat(id: unknown): boolean {
  return typeof id === 'string' && id.startsWith(ITEM_PREFIX)
}
