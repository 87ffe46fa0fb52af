import type { CallQuery, CallStore } from './call-store.ts'
import type { CallLogEntry } from './entry.ts'

/** Options of {@link MemoryCallStore}. */
export interface MemoryCallStoreOptions {
  /** Most entries kept; the oldest give way. Defaults to 100000. */
  maxEntries?: number
}

interface Kept {
  readonly entry: CallLogEntry
  readonly createdAt: number
}

/**
 * A call log in this process's memory: bounded, gone with the process.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const store = new MemoryCallStore({ maxEntries: 10_000 })
 */
export class MemoryCallStore implements CallStore {
  readonly #maxEntries: number
  readonly #byId = new Map<string, CallLogEntry>()
  /** Ascending by id. What stands before `#start` is gone; taking it off each time would move all the others. */
  #kept: (Kept | undefined)[] = []
  #start = 0

  constructor(options: MemoryCallStoreOptions = {}) {
    const { maxEntries = 100_000 } = options
    if (!(maxEntries >= 1)) throw new TypeError('MemoryCallStore: "maxEntries" must be at least 1')
    this.#maxEntries = maxEntries
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#byId.has(entry.id)) continue
      this.#byId.set(entry.id, entry)
      // Calls end in another order than they began, but not by much: the place is near the end.
      this.#kept.splice(this.#placeOf(entry.id), 0, { entry, createdAt: Date.parse(entry.created_at) })
      if (this.#byId.size > this.#maxEntries) this.#dropOldest()
    }
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    return this.#byId.get(id)
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const found: CallLogEntry[] = []
    const { from = Number.NEGATIVE_INFINITY, limit } = query
    let at = query.before === undefined ? this.#kept.length : this.#placeOf(query.before)
    while (--at >= this.#start && found.length < limit) {
      const kept = this.#kept[at] as Kept
      if (kept.createdAt < from) break
      if (matches(kept, query)) found.push(withoutBody(kept.entry))
    }
    return found
  }

  async prune(before: number, limit: number): Promise<number> {
    let pruned = 0
    while (pruned < limit && this.#start < this.#kept.length) {
      if ((this.#kept[this.#start] as Kept).createdAt >= before) break
      this.#dropOldest()
      pruned++
    }
    return pruned
  }

  /** Where an id stands, or would stand. */
  #placeOf(id: string): number {
    let low = this.#start
    let high = this.#kept.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#kept[middle] as Kept).entry.id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #dropOldest(): void {
    this.#byId.delete((this.#kept[this.#start] as Kept).entry.id)
    this.#kept[this.#start++] = undefined
    if (this.#start * 2 < this.#kept.length) return
    this.#kept = this.#kept.slice(this.#start)
    this.#start = 0
  }
}

function matches({ entry, createdAt }: Kept, query: CallQuery): boolean {
  return (
    (query.account === undefined || entry.account === query.account) &&
    (query.model === undefined || entry.model === query.model) &&
    (query.status === undefined || entry.status === query.status) &&
    (query.code === undefined || entry.error_code === query.code) &&
    (query.to === undefined || createdAt < query.to)
  )
}

function withoutBody(entry: CallLogEntry): CallLogEntry {
  return entry.response_body === null ? entry : { ...entry, response_body: null }
}
