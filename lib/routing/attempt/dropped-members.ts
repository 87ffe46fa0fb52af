import type { CallRequest } from '../../core/call/index.ts'
import type { JsonObject } from '../../core/json/index.ts'
import { referencesIn } from '../../core/operations/index.ts'
import { Untranslatable } from '../../core/translate/index.ts'

/** The most members that are told, and the most characters of each. */
const MAX_TOLD = 20
const MAX_PATH_LENGTH = 60

/** Collects the members of a request that are left out for a line. */
export class DroppedMembers {
  readonly #request: Pick<CallRequest, 'body' | 'references'>
  readonly #told: string[] = []
  #count = 0

  constructor(request: Pick<CallRequest, 'body' | 'references'>) {
    this.#request = request
  }

  /**
   * Leaves out a member.
   *
   * @throws {Untranslatable} if it names something that an upstream keeps: without it, the request is about another thing.
   */
  add(param: string, what?: string): void {
    const { body, references } = this.#request
    if (references.length > 0 && namesSomething(body.json, param)) throw new Untranslatable(param, what)
    if (this.#count++ < MAX_TOLD) this.#told.push(headerSafe(param))
  }

  /** The paths of the first members, and how many more there are; undefined if there is none. */
  get told(): readonly string[] | undefined {
    if (this.#count === 0) return undefined
    return this.#count > MAX_TOLD ? [...this.#told, `+${this.#count - MAX_TOLD}`] : this.#told
  }
}

/** Whether a member names something that an upstream keeps; true of one that is not found. */
function namesSomething(json: JsonObject, param: string): boolean {
  const names = Object.hasOwn(json, param) ? [param] : (param.match(/[^.[\]]+/g) ?? [])
  let holder = ''
  let value: unknown = json
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return true
    if (!Array.isArray(value)) holder = name
    value = (value as JsonObject)[name]
  }
  const isItem = /^\d+$/.test(names.at(-1) ?? '')
  return referencesIn({ [holder]: isItem ? [value] : value }).length > 0
}

/** Names of members can hold any character; those of a path that a header cannot hold are replaced. */
function headerSafe(path: string): string {
  const kept = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH - 1)}~` : path
  return kept.replaceAll(/[^\w.[\]$~-]/g, '?')
}
