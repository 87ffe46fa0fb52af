import { isJsonObject, type JsonObject } from '../../json/index.ts'

/** The prefix of the ids of reasoning items that were made from a chat. */
export const ITEM_PREFIX = 'rs_resp_'

/** Removes reasoning items that were made from a chat: a line that stores responses does not know their ids. */
export function responsesWithoutForeign(json: JsonObject): JsonObject {
  const { input } = json
  if (!Array.isArray(input)) return json
  return { ...json, input: input.filter((item) => !(isJsonObject(item) && isFromChat(item.id))) }
}

/** Whether a reasoning item was made from a chat, by its id. */
export function isFromChat(id: unknown): boolean {
  return typeof id === 'string' && id.startsWith(ITEM_PREFIX)
}
