import { isJsonObject, type JsonObject, objectsIn } from '../../../core/json/index.ts'
import type { KeptName } from '../../../core/operations/index.ts'

/** What the answer about a thing names that the upstream made of it: the members, by the kind of the thing. */
const YIELDS: Readonly<Record<string, readonly string[]>> = {
  batch: ['output_file_id', 'error_file_id'],
  fine_tuning_job: ['result_files'],
  upload: ['file'],
}

/** Whether the answers about things of a kind name other things. */
export function yieldsThings(kind: string): boolean {
  return Object.hasOwn(YIELDS, kind)
}

/** Returns the things that the answer to a create names: the new one, and what it consists of. */
export function madeBy(json: unknown, kind: string): KeptName[] {
  if (!isJsonObject(json)) return []
  const made = kind === 'thread' ? (json.thread_id ?? json.id) : idOf(json)
  return [...named('string' === typeof made ? made : undefined, kind), ...yieldedBy(json, kind)]
}

/** Returns the files that an answer about a batch, an upload or a job names. */
export function yieldedBy(json: unknown, kind: string): KeptName[] {
  if (!isJsonObject(json) || !yieldsThings(kind)) return []
  return (YIELDS[kind] ?? []).flatMap((name) => {
    const value = json[name]
    const ids = Array.isArray(value) ? value : [isJsonObject(value) ? value.id : value]
    return ids.flatMap((id) => named(id, 'file'))
  })
}

/** A list of an upstream's things. */
export interface ThingList {
  readonly json: JsonObject
  /** The member with the things. */
  readonly member: string
  readonly items: readonly JsonObject[]
}

/** Returns the list that an answer holds: `data`, or its only list; undefined if it holds none. */
export function listIn(json: unknown): ThingList | undefined {
  if (!isJsonObject(json)) return undefined
  const lists = Object.keys(json).filter((name) => Array.isArray(json[name]))
  const member = lists.includes('data') ? 'data' : lists[0]
  if (member === undefined || (member !== 'data' && lists.length > 1)) return undefined
  return { json, member, items: objectsIn(json[member]) }
}

/** Returns a list with some of its things only, and its ends moved to them. */
export function shortened({ json, member }: ThingList, items: readonly JsonObject[]): JsonObject {
  const ends: Record<string, unknown> = {}
  if ('first_id' in json) ends.first_id = items[0]?.id ?? null
  if ('last_id' in json) ends.last_id = items.at(-1)?.id ?? null
  return { ...json, ...ends, [member]: items }
}

/** Returns the id of a thing, which Google calls its name. */
export function idOf({ id, name }: JsonObject): string | undefined {
  if (typeof id === 'string') return id
  return typeof name === 'string' && /^\w+\//.test(name) ? name : undefined
}

function named(id: unknown, kind: string): KeptName[] {
  return typeof id === 'string' ? [{ kind, id }] : []
}
