import type { CallQuery, CallStore } from './call-store.ts'
import type { CallLogEntry } from './entry.ts'

/** Options of {@link MemoryCallStore}. */
export interface MemoryCallStoreOptions {
  /** Most entries kept; the oldest give way. Defaults to 20000. */
  maxEntries?: number
}

/** What is searched by, and the entry as text: a hundred thousand object trees would keep the collector busy. */
interface Kept {
  readonly id: string
  readonly createdAt: number
  readonly account: string | null
  readonly model: string | null
  readonly status: number
  readonly code: string | null
  readonly text: string
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
  readonly #byId = new Map<string, Kept>()
  /** Ascending by id. What stands before `#start` is gone; taking it off each time would move all the others. */
  #kept: (Kept | undefined)[] = []
  #start = 0

  constructor(options: MemoryCallStoreOptions = {}) {
    const { maxEntries = 20_000 } = options
    if (!(maxEntries >= 1)) throw new TypeError('MemoryCallStore: "maxEntries" must be at least 1')
    this.#maxEntries = maxEntries
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#byId.has(entry.id)) continue
      const kept = keep(entry)
      this.#byId.set(entry.id, kept)
      // Calls end in another order than they began, but not by much: the place is near the end.
      this.#kept.splice(this.#placeOf(entry.id), 0, kept)
      if (this.#byId.size > this.#maxEntries) this.#dropOldest()
    }
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    const kept = this.#byId.get(id)
    return kept && read(kept)
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const found: CallLogEntry[] = []
    const { from = Number.NEGATIVE_INFINITY, limit } = query
    let at = query.before === undefined ? this.#kept.length : this.#placeOf(query.before)
    while (--at >= this.#start && found.length < limit) {
      const kept = this.#kept[at] as Kept
      if (kept.createdAt < from) break
      if (matches(kept, query)) found.push(withoutBody(read(kept)))
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
      if ((this.#kept[middle] as Kept).id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #dropOldest(): void {
    this.#byId.delete((this.#kept[this.#start] as Kept).id)
    this.#kept[this.#start++] = undefined
    if (this.#start * 2 < this.#kept.length) return
    this.#kept = this.#kept.slice(this.#start)
    this.#start = 0
  }
}

function keep(entry: CallLogEntry): Kept {
  return {
    id: entry.id,
    createdAt: Date.parse(entry.created_at),
    account: entry.account,
    model: entry.model,
    status: entry.status,
    code: entry.error_code,
    text: JSON.stringify(entry),
  }
}

function read({ text }: Kept): CallLogEntry {
  return JSON.parse(text) as CallLogEntry
}

function matches(kept: Kept, query: CallQuery): boolean {
  return (
    (query.account === undefined || kept.account === query.account) &&
    (query.model === undefined || kept.model === query.model) &&
    (query.status === undefined || kept.status === query.status) &&
    (query.code === undefined || kept.code === query.code) &&
    (query.to === undefined || kept.createdAt < query.to)
  )
}

function withoutBody(entry: CallLogEntry): CallLogEntry {
  return entry.response_body === null ? entry : { ...entry, response_body: null }
}
