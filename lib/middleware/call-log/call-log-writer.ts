import { bytesOfEntry, type CallLogEntry, type Logger, quietLogger } from '../../core/call/index.ts'
import { type CallStore, MemoryCallStore } from '../../core/call-store/index.ts'
import { FairQueue } from '../../core/fair-queue/index.ts'
import { withinMemory } from '../../core/memory/index.ts'
import {
  aLogger,
  aNumber,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { boundedStore, Outage } from '../../core/store-guard/index.ts'
import { within } from '../../core/timing/index.ts'
import { Retention } from './retention.ts'

/** Options of {@link CallLogWriter}. */
export interface CallLogWriterOptions {
  /** The store of the entries. */
  store: CallStore
  /** Logs when the store fails or entries are dropped, and when that ends. Defaults to the console. */
  logger?: Logger
  /** The largest number of entries in the queue. Of more, the oldest of the account with the most are dropped and counted. Defaults to 10000. */
  maxQueue?: number
  /** About the most bytes of entries in the queue, in the same way. Defaults to 64 MiB, less where the process may take less than 1 GiB. */
  maxQueueBytes?: number
  /** The largest number of entries written at once. Defaults to 500. */
  batchSize?: number
  /** How long an entry waits for others to share its batch, in milliseconds; at most 1000. Defaults to 50. */
  flushMs?: number
  /** How long entries are kept, in milliseconds; null keeps them for ever. Defaults to 30 days. */
  keepEntriesMs?: number | null
}

const atLeast1 = aNumber('at least 1', 1)
const RULES: OptionRules<CallLogWriterOptions> = {
  store: required(anObjectWith('a CallStore, such as new MemoryCallStore()', 'append')),
  logger: aLogger,
  maxQueue: atLeast1,
  maxQueueBytes: atLeast1,
  batchSize: atLeast1,
  flushMs: aNumber('between 0 and 1000', 0, 1000),
  keepEntriesMs: {
    be: 'a number of milliseconds, or null',
    accepts: (value) => value === null || typeof value === 'number',
  },
}

const FIRST_RETRY_MS = 100
/** Kept short so that entries are visible within about a second after an outage, too. */
const MAX_RETRY_MS = 1000
const THIRTY_DAYS_MS = 30 * 86_400_000
const MAX_BATCH_BYTES = 8 * 1024 * 1024
/** How often an entry may fail alone while others are written. */
const MAX_FAILURES = 3
/** The most accounts whose dropped entries are counted apart. */
const MAX_NAMED = 20
const OTHERS = '(others)'

/**
 * Writes call log entries in batches, off the path of requests. While the store fails, queued entries are kept and
 * tried again, fewer at a time. Entries are dropped, and counted, when the queue is full; a single one, when the store
 * refuses it again and again while it takes others.
 *
 * Accounts share the queue: the one that has the most waiting loses its oldest entries, and batches take from all in turn.
 * Entries without an account count as those of one account.
 *
 * Call {@link close} at shutdown: no timer of the writer keeps the process alive.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const writer = new CallLogWriter({ store })
 * app.use(beginCall(), callLog({ writer }))
 */
export class CallLogWriter {
  readonly #store: CallStore
  readonly #logger: Logger
  readonly #maxQueue: number
  readonly #maxQueueBytes: number
  readonly #batchSize: number
  readonly #flushMs: number
  readonly #retention: Retention | undefined
  readonly #queue: FairQueue<CallLogEntry>
  readonly #outage: Outage
  /** Entries that failed alone. Each is tried alone again, in turn with batches of others. */
  #suspects: CallLogEntry[] = []
  #suspectsTurn = false
  #accepted = 0
  /** How many of the accepted entries are written or dropped. */
  #ended = 0
  #written = 0
  #dropped = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #retryMs = 0
  /** Fewer than the batch size after failures, so that an entry that always fails does not hold up others. */
  #atOnce: number
  /** How often an entry has failed alone, and how many others had been written by then. */
  readonly #failures = new WeakMap<CallLogEntry, { times: number; written: number }>()
  /** Ends the pause before the next retry. */
  #retryNow: (() => void) | undefined
  /** The entries dropped in the present outage, by account; undefined without an outage. */
  #droppedInOutage: Map<string, number> | undefined
  #closed = false

  constructor(options: CallLogWriterOptions) {
    checkOptions('CallLogWriter', options, RULES)
    const { maxQueue = 10_000, batchSize = 500, flushMs = 50 } = options
    const logger = quietLogger(options.logger)
    const { keepEntriesMs = THIRTY_DAYS_MS, maxQueueBytes = withinMemory(64 * 1024 * 1024) } = options
    const store = boundedStore('call log', options.store)
    // The toolkit's own store in memory always answers.
    const isOfMemory = options.store.append === MemoryCallStore.prototype.append
    this.#store = isOfMemory ? options.store : store
    this.#logger = logger
    this.#outage = new Outage({ store: 'call log', effect: 'entries of calls come later', logger })
    this.#maxQueue = maxQueue
    this.#maxQueueBytes = maxQueueBytes
    this.#queue = new FairQueue({ maxItems: maxQueue, maxBytes: maxQueueBytes })
    this.#batchSize = batchSize
    this.#atOnce = batchSize
    this.#flushMs = flushMs
    this.#retention = keepEntriesMs === null ? undefined : new Retention({ store, logger, keepEntriesMs })
  }

  /** The number of entries that were dropped because the queue was full or the writer closed. */
  get dropped(): number {
    return this.#dropped
  }

  /** The number of entries that wait to be written. */
  get queued(): number {
    return this.#queue.size
  }

  /** About how many bytes these take. */
  get queuedBytes(): number {
    return this.#queue.bytes
  }

  /** Queues an entry, which is visible in the store within a second. Never throws, never waits. */
  add(entry: CallLogEntry): void {
    if (this.#closed) {
      this.#dropped++
      return
    }
    this.#accepted++
    const dropped = this.#queue.add(entry.account ?? '', entry, bytesOfEntry(entry))
    if (dropped.length > 0) {
      if (!this.#droppedInOutage)
        this.#logger.error({ queued: this.#queue.size }, 'call log: the queue is full, entries are dropped')
      this.#droppedInOutage ??= new Map()
      for (const each of dropped) this.#noteDropped(each)
    }
    this.#schedule()
  }

  /** Keeps entries for another time from now on, in milliseconds; has no effect if entries are kept for ever. */
  keepFor(keepEntriesMs: number): void {
    this.#retention?.keepFor(keepEntriesMs)
  }

  /** Writes all entries that are queued now, however long that takes. */
  async flush(): Promise<void> {
    const target = this.#accepted
    this.#retryNow?.()
    while (this.#ended < target) {
      this.#writing ??= this.#writeBatch()
      await this.#writing
    }
  }

  /**
   * Stops accepting entries and writes the queued ones.
   *
   * @param timeoutMs how long that may take; entries left then are dropped and counted.
   */
  async close(timeoutMs = 5000): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#retention?.stop()
    clearTimeout(this.#timer)
    await within(timeoutMs, this.flush(), () => {})
    const lost = this.#queue.clear()
    if (lost === 0) return
    this.#suspects = []
    this.#dropped += lost
    this.#ended += lost
    this.#retryNow?.()
    this.#logger.error({ lost }, 'call log: closed before all entries could be written')
  }

  #schedule(): void {
    if (this.#writing || this.#closed) return
    if (this.#queue.size >= this.#batchSize) this.#writing = this.#writeBatch()
    else
      this.#timer ??= setTimeout(() => {
        this.#writing ??= this.#writeBatch()
      }, this.#flushMs).unref()
  }

  /**
   * Writes one batch. A failed batch stays queued, and the promise includes the pause before a retry. Never rejects.
   */
  async #writeBatch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#nextBatch()
    try {
      await this.#store.append(batch)
      this.#written += this.#end(batch)
      this.#retryMs = 0
      this.#atOnce = Math.min(this.#batchSize, this.#atOnce * 8)
      if (this.#droppedInOutage) this.#endOutage(this.#droppedInOutage)
    } catch (error) {
      this.#outage.begins(error, { queued: this.#queue.size })
      this.#droppedInOutage ??= new Map()
      this.#atOnce = Math.max(1, Math.ceil(batch.length / 8))
      if (batch.length === 1) this.#failedAlone(batch[0] as CallLogEntry, error)
      else this.#queue.putBack(batch)
      await this.#retryPause()
    } finally {
      this.#writing = undefined
      if (this.#queue.size > 0) this.#schedule()
    }
  }

  #nextBatch(): CallLogEntry[] {
    this.#suspectsTurn = !this.#suspectsTurn || this.#queue.waiting === 0
    if (this.#suspectsTurn && this.#suspects.length > 0) return this.#suspects.splice(0, 1)
    return this.#queue.take(this.#atOnce, MAX_BATCH_BYTES)
  }

  /** Ends entries that are written or given up; returns how many. The queue is empty by now if `close` timed out. */
  #end(entries: readonly CallLogEntry[]): number {
    const before = this.#queue.size
    this.#queue.done(entries)
    const ended = before - this.#queue.size
    this.#ended += ended
    return ended
  }

  /** Has an entry tried alone. Drops it if it keeps failing while others are written. */
  #failedAlone(entry: CallLogEntry, error: unknown): void {
    // The queue is empty by now if `close` timed out.
    if (this.#queue.size === 0) return
    const { times, written } = this.#failures.get(entry) ?? { times: 0, written: -1 }
    const isAtFault = this.#written > written
    this.#failures.set(entry, { times: isAtFault ? times + 1 : times, written: this.#written })
    if (times < MAX_FAILURES) {
      this.#suspects.push(entry)
      return
    }
    this.#end([entry])
    this.#dropped++
    this.#logger.error({ err: error, requestId: entry.id }, 'call log: the store refuses an entry')
  }

  async #retryPause(): Promise<void> {
    this.#retryMs = Math.min(MAX_RETRY_MS, this.#retryMs * 2 || FIRST_RETRY_MS)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#retryMs).unref()
      this.#retryNow = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#retryNow = undefined
  }

  #noteDropped({ account }: CallLogEntry): void {
    this.#dropped++
    this.#ended++
    const counts = this.#droppedInOutage as Map<string, number>
    const own = account ?? ''
    const name = counts.has(own) || counts.size < MAX_NAMED ? own : OTHERS
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }

  /** Waits until half the queue is free: a slow store would otherwise be logged with every batch. */
  #endOutage(counts: ReadonlyMap<string, number>): void {
    if (this.#queue.size * 2 > this.#maxQueue || this.#queue.bytes * 2 > this.#maxQueueBytes) return
    const dropped = [...counts.values()].reduce((sum, count) => sum + count, 0)
    this.#droppedInOutage = undefined
    this.#outage.ends()
    if (dropped > 0)
      this.#logger.warn(
        { dropped, accounts: Object.fromEntries(counts) },
        'call log: entries are written again',
      )
  }
}
