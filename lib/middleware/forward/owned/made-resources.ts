import { isJsonObject, type JsonObject, tokenCount } from '../../../core/json/index.ts'
import type { CreatedResource } from '../../../core/upstream-resources/index.ts'

/** The members of an answer that name the files which the upstream made, by the kind of the resource. */
const YIELDS: Readonly<Record<string, readonly string[]>> = {
  batch: ['output_file_id', 'error_file_id'],
  fine_tuning_job: ['result_files'],
  upload: ['file'],
}

/** Whether the answers about resources of a kind name other resources. */
export function namesFiles(kind: string): boolean {
  return Object.hasOwn(YIELDS, kind)
}

/** Returns the resources that the answer to a create names: the new one, and what it consists of. */
export function resourcesMadeBy(json: unknown, kind: string): CreatedResource[] {
  if (!isJsonObject(json)) return []
  const id = kind === 'thread' ? (json.thread_id ?? json.id) : idOf(json)
  const seconds = kind === 'file' ? tokenCount(json.expires_at) : undefined
  const made = named(id, kind).map((resource) =>
    seconds ? { ...resource, expiresAt: seconds * 1000 } : resource,
  )
  return [...made, ...filesNamedBy(json, kind)]
}

/** Returns the files that an answer about a batch, an upload or a job names. */
export function filesNamedBy(json: unknown, kind: string): CreatedResource[] {
  if (!isJsonObject(json) || !namesFiles(kind)) return []
  return (YIELDS[kind] ?? []).flatMap((name) => {
    const value = json[name]
    const ids = Array.isArray(value) ? value : [isJsonObject(value) ? value.id : value]
    return ids.flatMap((id) => named(id, 'file'))
  })
}

/** Returns the id of a resource, which Google calls its name. */
export function idOf({ id, name }: JsonObject): string | undefined {
  if (typeof id === 'string') return id
  return typeof name === 'string' && /^\w+\//.test(name) ? name : undefined
}

function named(id: unknown, kind: string): CreatedResource[] {
  return typeof id === 'string' ? [{ kind, id }] : []
}
