import { type CallLogEntry, lineOf } from '../call/index.ts'
import { NO_TAGS, type Tags } from '../catalog/index.ts'
import { aNumber, anObjectWith, checkOptions } from '../options/index.ts'
import type { CallPage, CallQuery, CallStore } from './call-store.ts'

/** Options of {@link MemoryCallStore}. */
export interface MemoryCallStoreOptions {
  /** Most entries to hold; the oldest are dropped. Defaults to 20000. */
  maxEntries?: number
  /** Counts the entries, such as the `usage` of a `MemoryLedger`. Defaults to none. */
  usage?: { count(entry: CallLogEntry): void }
}

type EntryChange = (entry: CallLogEntry) => CallLogEntry

const MAX_PENDING_CHANGES = 1000

/**
 * A call store in this process's memory. It is bounded and ends with the process.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const store = new MemoryCallStore({ maxEntries: 10_000 })
 */
export class MemoryCallStore implements CallStore {
  readonly #maxEntries: number
  readonly #usage: MemoryCallStoreOptions['usage']
  /** Ascending by id. The slots before `#start` are empty: removing them one by one would move all the others. */
  #entries: (CallLogEntry | undefined)[] = []
  #start = 0
  /** Changes of entries that have not been appended yet. */
  readonly #pendingChanges = new Map<string, EntryChange>()

  constructor(options: MemoryCallStoreOptions = {}) {
    checkOptions<MemoryCallStoreOptions>('MemoryCallStore', options, {
      maxEntries: aNumber('at least 1', 1),
      usage: anObjectWith('the usage of a MemoryLedger', 'count'),
    })
    const { maxEntries = 20_000, usage } = options
    this.#usage = usage
    this.#maxEntries = maxEntries
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as CallLogEntry
      const change = this.#pendingChanges.get(entry.id)
      this.#pendingChanges.delete(entry.id)
      const changed = change ? change(entry) : entry
      const last = this.#entries.at(-1)
      if (last === undefined || last.id < entry.id) this.#entries.push(changed)
      else if (!this.#insert(changed)) continue
      // A change is of a charge that came later.
      this.#usage?.count(entry)
      if (this.#entries.length - this.#start > this.#maxEntries) this.#dropOldest()
    }
  }

  /**
   * Changes an entry. A `MemoryTaskStore` calls it when a video task ends, long after the entry was appended or before.
   */
  amend(id: string, change: EntryChange): void {
    const index = this.#indexOf(id)
    const entry = this.#entries[index]
    if (entry?.id === id) this.#entries[index] = change(entry)
    else this.#addPendingChange(id, change)
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    const entry = this.#entries[this.#indexOf(id)]
    return entry?.id === id ? entry : undefined
  }

  async list(query: CallQuery): Promise<CallPage> {
    const found: CallLogEntry[] = []
    const from = query.from === undefined ? '' : isoOf(query.from)
    const to = query.to === undefined ? undefined : isoOf(query.to)
    let at = query.before === undefined ? this.#entries.length : this.#indexOf(query.before)
    while (--at >= this.#start && found.length < query.limit) {
      const entry = this.#entries[at] as CallLogEntry
      if (entry.created_at < from) break
      if ((to === undefined || entry.created_at < to) && matches(entry, query)) found.push(withoutBody(entry))
    }
    return { entries: found }
  }

  async prune(before: number, limit: number): Promise<number> {
    const end = isoOf(before)
    let pruned = 0
    while (pruned < limit && this.#start < this.#entries.length) {
      if ((this.#entries[this.#start] as CallLogEntry).created_at >= end) break
      this.#dropOldest()
      pruned++
    }
    return pruned
  }

  /** Stores a change until its entry comes. The number is bounded, because the entry may have been dropped. */
  #addPendingChange(id: string, change: EntryChange): void {
    const [oldest] = this.#pendingChanges.keys()
    if (this.#pendingChanges.size >= MAX_PENDING_CHANGES && oldest !== undefined)
      this.#pendingChanges.delete(oldest)
    this.#pendingChanges.set(id, change)
  }

  /**
   * Inserts an entry in the order of ids. Calls end in about the order in which they began, so it goes near the end.
   * Returns false if it is there already.
   */
  #insert(entry: CallLogEntry): boolean {
    const { length } = this.#entries
    let back = 1
    while (length - back > this.#start && (this.#entries[length - back] as CallLogEntry).id > entry.id)
      back *= 2
    const index = this.#indexOf(entry.id, Math.max(this.#start, length - back))
    if (this.#entries[index]?.id === entry.id) return false
    this.#entries.splice(index, 0, entry)
    return true
  }

  /**
   * Returns the index of an id, or the index at which it would be inserted.
   *
   * @param low an index before which it surely is not.
   */
  #indexOf(id: string, low = this.#start): number {
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle] as CallLogEntry).id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #dropOldest(): void {
    this.#entries[this.#start++] = undefined
    if (this.#start * 2 < this.#entries.length) return
    this.#entries = this.#entries.slice(this.#start)
    this.#start = 0
  }
}

const YEAR_10000 = 253_402_300_800_000

/** Formats a time as entries do, so that texts sort by time. Times out of range sort before or behind all entries. */
function isoOf(time: number): string {
  if (time < 0) return ''
  return time < YEAR_10000 ? new Date(time).toISOString() : '~'
}

function matches(entry: CallLogEntry, query: CallQuery): boolean {
  return (
    (query.ids === undefined || query.ids.includes(entry.id)) &&
    (query.account === undefined || entry.account === query.account) &&
    (query.key === undefined || entry.key === query.key) &&
    (query.model === undefined || entry.model === query.model) &&
    (query.line === undefined || lineOf(entry) === query.line) &&
    (query.user === undefined || entry.user === query.user) &&
    (query.tags === undefined || hasTags(entry, query.tags)) &&
    (query.status === undefined || entry.status === query.status) &&
    (query.statusClass === undefined || Math.floor(entry.status / 100) === query.statusClass) &&
    (query.code === undefined || entry.error_code === query.code) &&
    (query.minDurationMs === undefined || entry.duration_ms >= query.minDurationMs) &&
    (query.clientRequestId === undefined || entry.client_request_id === query.clientRequestId)
  )
}

function hasTags({ tags = NO_TAGS }: CallLogEntry, asked: Tags): boolean {
  return Object.entries(asked).every(([name, value]) => Object.hasOwn(tags, name) && tags[name] === value)
}

function withoutBody(entry: CallLogEntry): CallLogEntry {
  return entry.response_body === null ? entry : { ...entry, response_body: null }
}
