import { isJsonObject, type JsonObject } from '../json/index.ts'

/** Turns a whole answer into the events of a stream and back, for an upstream that sends the one it was not asked for. */
export interface AnswerForm {
  /** Returns the events of the stream that says what a whole answer says. */
  toStream(answer: JsonObject): string
  /** Returns the whole answer that a stream says, given the data of its events. */
  fromStream(events: readonly JsonObject[]): JsonObject
}

/** Deeper members of a delta are replaced, not merged. */
const MAX_DEPTH = 8
/** Text members that are not continued by later deltas. */
const WHOLE: ReadonlySet<string> = new Set(['id', 'type', 'role', 'name', 'object', 'format'])

/**
 * Merges a delta into what came before: texts and lists are continued, and objects of a list that name an `index` are
 * merged by it.
 */
export function mergeDelta(into: Record<string, unknown>, delta: JsonObject, depth = 0): void {
  for (const [name, value] of Object.entries(delta)) {
    if (name === '__proto__' || value === undefined) continue
    const before = Object.hasOwn(into, name) ? into[name] : undefined
    if (value === null) into[name] = before ?? null
    else if (typeof value === 'string' && typeof before === 'string')
      into[name] = WHOLE.has(name) ? before || value : before + value
    else if (Array.isArray(value)) into[name] = mergeLists(Array.isArray(before) ? before : [], value, depth)
    else if (isJsonObject(value) && depth < MAX_DEPTH) {
      const members: Record<string, unknown> = isJsonObject(before) ? { ...before } : {}
      mergeDelta(members, value, depth + 1)
      into[name] = members
    } else into[name] = value
  }
}

function mergeLists(before: readonly unknown[], more: readonly unknown[], depth: number): unknown[] {
  const list = [...before]
  for (const item of more) {
    const at =
      isJsonObject(item) && typeof item.index === 'number'
        ? list.findIndex((one) => isJsonObject(one) && one.index === item.index)
        : -1
    if (at < 0 || depth >= MAX_DEPTH) {
      list.push(item)
      continue
    }
    const members = { ...(list[at] as JsonObject) }
    mergeDelta(members, item as JsonObject, depth + 1)
    list[at] = members
  }
  return list
}
