import { isJsonObject, type JsonObject, tokenCount } from '../../../core/json/index.ts'
import type { MadeThing } from '../../../core/kept/index.ts'

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
export function madeBy(json: unknown, kind: string): MadeThing[] {
  if (!isJsonObject(json)) return []
  const id = kind === 'thread' ? (json.thread_id ?? json.id) : idOf(json)
  const seconds = kind === 'file' ? tokenCount(json.expires_at) : undefined
  const made = named(id, kind).map((thing) => (seconds ? { ...thing, expiresAt: seconds * 1000 } : thing))
  return [...made, ...yieldedBy(json, kind)]
}

/** Returns the files that an answer about a batch, an upload or a job names. */
export function yieldedBy(json: unknown, kind: string): MadeThing[] {
  if (!isJsonObject(json) || !yieldsThings(kind)) return []
  return (YIELDS[kind] ?? []).flatMap((name) => {
    const value = json[name]
    const ids = Array.isArray(value) ? value : [isJsonObject(value) ? value.id : value]
    return ids.flatMap((id) => named(id, 'file'))
  })
}

/** Returns the id of a thing, which Google calls its name. */
export function idOf({ id, name }: JsonObject): string | undefined {
  if (typeof id === 'string') return id
  return typeof name === 'string' && /^\w+\//.test(name) ? name : undefined
}

function named(id: unknown, kind: string): MadeThing[] {
  return typeof id === 'string' ? [{ kind, id }] : []
}
