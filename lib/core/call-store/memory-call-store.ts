import { type CallLogEntry, lineOf } from '../call/index.ts'
import { NO_TAGS, type Tags } from '../catalog/index.ts'
import { FairQueue } from '../fair-queue/index.ts'
import { aNumber, anObjectWith, checkOptions } from '../options/index.ts'
import { countsOf } from '../usage/index.ts'
import type { CallPage, CallQuery, CallStore } from './call-store.ts'

/** Options of {@link MemoryCallStore}. */
export interface MemoryCallStoreOptions {
  /** Most entries to hold; of the account with the most, those that came first are dropped. Defaults to 20000. */
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
  readonly #usage: MemoryCallStoreOptions['usage']
  readonly #entries = new Map<string, CallLogEntry>()
  /** In the order in which they came: after the clock was set back, new calls have smaller ids than old ones. */
  readonly #order: FairQueue<string>
  /** Ascending. Some are of entries that were dropped: removing them one by one would move all the others. */
  #ids: string[] = []
  /** Changes of entries that have not been appended yet. */
  readonly #pendingChanges = new Map<string, EntryChange>()

  constructor(options: MemoryCallStoreOptions = {}) {
    checkOptions<MemoryCallStoreOptions>('MemoryCallStore', options, {
      maxEntries: aNumber('at least 1', 1),
      usage: anObjectWith('the usage of a MemoryLedger', 'count'),
    })
    const { maxEntries = 20_000, usage } = options
    this.#usage = usage
    this.#order = new FairQueue({ maxItems: maxEntries })
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as CallLogEntry
      const change = this.#pendingChanges.get(entry.id)
      this.#pendingChanges.delete(entry.id)
      if (this.#entries.has(entry.id)) continue
      this.#entries.set(entry.id, change ? change(entry) : entry)
      const last = this.#ids.at(-1)
      if (last === undefined || last < entry.id) this.#ids.push(entry.id)
      else this.#insert(entry.id)
      // A change is of a charge that came later.
      this.#usage?.count(entry)
      for (const dropped of this.#order.add(accountOf(entry), entry.id)) this.#drop(dropped)
    }
  }

  /**
   * Changes an entry. A `MemoryTaskStore` calls it when a video task ends, long after the entry was appended or before.
   */
  amend(id: string, change: EntryChange): void {
    const entry = this.#entries.get(id)
    if (entry) this.#entries.set(id, change(entry))
    else this.#addPendingChange(id, change)
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    return this.#entries.get(id)
  }

  async list(query: CallQuery): Promise<CallPage> {
    const found: CallLogEntry[] = []
    const from = query.from === undefined ? '' : isoOf(query.from)
    const to = query.to === undefined ? undefined : isoOf(query.to)
    let at = query.before === undefined ? this.#ids.length : this.#indexOf(query.before)
    while (--at >= 0 && found.length < query.limit) {
      const entry = this.#entryAt(at)
      if (!entry) continue
      if (entry.created_at < from) break
      if ((to === undefined || entry.created_at < to) && matches(entry, query)) found.push(withoutBody(entry))
    }
    return { entries: found }
  }

  async prune(before: number, limit: number): Promise<number> {
    const end = isoOf(before)
    const old: CallLogEntry[] = []
    for (let i = 0; i < this.#ids.length && old.length < limit; i++) {
      const entry = this.#entryAt(i)
      if (!entry) continue
      if (entry.created_at >= end) break
      old.push(entry)
    }
    for (const entry of old) {
      this.#order.delete(accountOf(entry), entry.id)
      this.#drop(entry.id)
    }
    return old.length
  }

  /** Stores a change until its entry comes. The number is bounded, because the entry may have been dropped. */
  #addPendingChange(id: string, change: EntryChange): void {
    const [oldest] = this.#pendingChanges.keys()
    if (this.#pendingChanges.size >= MAX_PENDING_CHANGES && oldest !== undefined)
      this.#pendingChanges.delete(oldest)
    this.#pendingChanges.set(id, change)
  }

  /** Inserts an id in its order. Calls end in about the order in which they began, so it goes near the end. */
  #insert(id: string): void {
    const { length } = this.#ids
    let back = 1
    while (length > back && (this.#ids[length - back] as string) > id) back *= 2
    const at = this.#indexOf(id, Math.max(0, length - back))
    // One that was dropped may come again.
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id)
  }

  /** Returns the entry at an index; undefined if it was dropped. */
  #entryAt(index: number): CallLogEntry | undefined {
    return this.#entries.get(this.#ids[index] as string)
  }

  /**
   * Returns the index of an id, or the index at which it would be inserted.
   *
   * @param low an index before which it surely is not.
   */
  #indexOf(id: string, low = 0): number {
    let high = this.#ids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#ids[middle] as string) < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #drop(id: string): void {
    this.#entries.delete(id)
    if (this.#ids.length > 2 * this.#entries.size)
      this.#ids = this.#ids.filter((each) => this.#entries.has(each))
  }
}

/** Entries without an account share what one account may have. */
function accountOf({ account }: CallLogEntry): string {
  return account ?? ''
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
    (query.outcome === undefined || entry.outcome === query.outcome) &&
    (query.counted === undefined || countsOf(entry).includes(query.counted)) &&
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
