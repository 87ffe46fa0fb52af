import type { CallLogEntry } from '../call/index.ts'
import type { CallQuery, CallStore } from './call-store.ts'

/** Options of {@link MemoryCallStore}. */
export interface MemoryCallStoreOptions {
  /** Most entries kept; the oldest give way. Defaults to 20000. */
  maxEntries?: number
}

type EntryChange = (entry: CallLogEntry) => CallLogEntry

const MOST_EARLY = 1000

/**
 * A call log in this process's memory: bounded, gone with the process.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const store = new MemoryCallStore({ maxEntries: 10_000 })
 */
export class MemoryCallStore implements CallStore {
  readonly #maxEntries: number
  /** Ascending by id. What stands before `#start` is gone; taking it off each time would move all the others. */
  #kept: (CallLogEntry | undefined)[] = []
  #start = 0
  /** Changes of entries that are still on their way here. */
  readonly #early = new Map<string, EntryChange>()

  constructor(options: MemoryCallStoreOptions = {}) {
    const { maxEntries = 20_000 } = options
    if (!(maxEntries >= 1)) throw new TypeError('MemoryCallStore: "maxEntries" must be at least 1')
    this.#maxEntries = maxEntries
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    for (const entry of entries) {
      const change = this.#early.get(entry.id)
      this.#early.delete(entry.id)
      this.#insert(change ? change(entry) : entry)
      if (this.#kept.length - this.#start > this.#maxEntries) this.#dropOldest()
    }
  }

  /**
   * Changes an entry, for a `MemoryTaskStore`: what a video task came to is known long after its call, or before the entry
   * of the call is here.
   */
  amend(id: string, change: EntryChange): void {
    const place = this.#placeOf(id)
    const entry = this.#kept[place]
    if (entry?.id === id) this.#kept[place] = change(entry)
    else this.#expect(id, change)
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    const entry = this.#kept[this.#placeOf(id)]
    return entry?.id === id ? entry : undefined
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const found: CallLogEntry[] = []
    const from = query.from === undefined ? '' : isoOf(query.from)
    const to = query.to === undefined ? undefined : isoOf(query.to)
    let at = query.before === undefined ? this.#kept.length : this.#placeOf(query.before)
    while (--at >= this.#start && found.length < query.limit) {
      const entry = this.#kept[at] as CallLogEntry
      if (entry.created_at < from) break
      if ((to === undefined || entry.created_at < to) && matches(entry, query)) found.push(withoutBody(entry))
    }
    return found
  }

  async prune(before: number, limit: number): Promise<number> {
    const end = isoOf(before)
    let pruned = 0
    while (pruned < limit && this.#start < this.#kept.length) {
      if ((this.#kept[this.#start] as CallLogEntry).created_at >= end) break
      this.#dropOldest()
      pruned++
    }
    return pruned
  }

  /** An entry that is not here may have been dropped for good. */
  #expect(id: string, change: EntryChange): void {
    const [oldest] = this.#early.keys()
    if (this.#early.size >= MOST_EARLY && oldest !== undefined) this.#early.delete(oldest)
    this.#early.set(id, change)
  }

  /** Calls end in another order than they began, but not by much: the place is at the end, or near it. */
  #insert(entry: CallLogEntry): void {
    const last = this.#kept.at(-1)
    if (last === undefined || last.id < entry.id) {
      this.#kept.push(entry)
      return
    }
    const place = this.#placeOf(entry.id)
    if (this.#kept[place]?.id !== entry.id) this.#kept.splice(place, 0, entry)
  }

  /** Where an id stands, or would stand. */
  #placeOf(id: string): number {
    let low = this.#start
    let high = this.#kept.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#kept[middle] as CallLogEntry).id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #dropOldest(): void {
    this.#kept[this.#start++] = undefined
    if (this.#start * 2 < this.#kept.length) return
    this.#kept = this.#kept.slice(this.#start)
    this.#start = 0
  }
}

const YEAR_10000 = 253_402_300_800_000

/** A time in the form entries have; texts of this form sort by time. What no entry can be is before or behind them all. */
function isoOf(time: number): string {
  if (time < 0) return ''
  return time < YEAR_10000 ? new Date(time).toISOString() : '~'
}

function matches(entry: CallLogEntry, query: CallQuery): boolean {
  return (
    (query.ids === undefined || query.ids.includes(entry.id)) &&
    (query.account === undefined || entry.account === query.account) &&
    (query.model === undefined || entry.model === query.model) &&
    (query.status === undefined || entry.status === query.status) &&
    (query.code === undefined || entry.error_code === query.code)
  )
}

function withoutBody(entry: CallLogEntry): CallLogEntry {
  return entry.response_body === null ? entry : { ...entry, response_body: null }
}
