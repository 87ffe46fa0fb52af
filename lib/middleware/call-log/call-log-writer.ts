import { type CallLogEntry, consoleLogger, type Logger } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import { within } from '../../core/time-limit/index.ts'
import { Retention } from './retention.ts'

/** Options of {@link CallLogWriter}. */
export interface CallLogWriterOptions {
  /** Where entries are kept. */
  store: CallStore
  /** Is told when the store fails or entries are dropped, and when that ends. Defaults to the console. */
  logger?: Logger
  /** Most entries waiting to be written; further ones are dropped and counted. Defaults to 10000. */
  maxQueue?: number
  /** Most entries written at once. Defaults to 500. */
  batchSize?: number
  /** How long an entry waits for others to be written with, in milliseconds; at most 1000. Defaults to 50. */
  flushMs?: number
  /** How long entries are kept, in milliseconds; null = for ever. Defaults to 30 days. */
  retentionMs?: number | null
}

const FIRST_RETRY_MS = 100
/** So that after an outage, too, entries are visible within about a second. */
const LAST_RETRY_MS = 1000
const THIRTY_DAYS_MS = 30 * 86_400_000

/**
 * Writes call log entries in batches, off the path of requests. While the store fails, what waits is kept and tried
 * again; only a full queue drops entries, and counts them.
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
  readonly #batchSize: number
  readonly #flushMs: number
  readonly #retention: Retention | undefined
  readonly #queue: CallLogEntry[] = []
  #accepted = 0
  #written = 0
  #dropped = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #retryMs = 0
  /** Ends the wait for the next try early. */
  #retryNow: (() => void) | undefined
  /** How many entries had been dropped when the trouble began; undefined without trouble. */
  #troubleSince: number | undefined
  #closed = false

  constructor(options: CallLogWriterOptions) {
    const { store, logger = consoleLogger, maxQueue = 10_000, batchSize = 500, flushMs = 50 } = options
    const { retentionMs = THIRTY_DAYS_MS } = options
    if (typeof store?.append !== 'function') throw new TypeError('CallLogWriter: "store" must be a CallStore')
    if (!(maxQueue >= 1)) throw new TypeError('CallLogWriter: "maxQueue" must be at least 1')
    if (!(batchSize >= 1)) throw new TypeError('CallLogWriter: "batchSize" must be at least 1')
    if (!(flushMs >= 0 && flushMs <= 1000))
      throw new TypeError('CallLogWriter: "flushMs" must be between 0 and 1000')
    this.#store = store
    this.#logger = logger
    this.#maxQueue = maxQueue
    this.#batchSize = batchSize
    this.#flushMs = flushMs
    this.#retention = retentionMs === null ? undefined : new Retention({ store, logger, retentionMs })
  }

  /** Entries that were not written, and will not be: the queue was full, or the writer closed. */
  get dropped(): number {
    return this.#dropped
  }

  /** Entries that wait to be written. */
  get queued(): number {
    return this.#queue.length
  }

  /** Takes an entry; it is visible in the store within a second. Never throws, never waits. */
  add(entry: CallLogEntry): void {
    if (this.#closed || this.#queue.length >= this.#maxQueue) {
      if (!this.#closed)
        this.#beginTrouble({ queued: this.#queue.length }, 'call log: the queue is full, entries are dropped')
      this.#dropped++
      return
    }
    this.#queue.push(entry)
    this.#accepted++
    this.#schedule()
  }

  /** Writes all that is queued now, for as long as that takes. */
  async flush(): Promise<void> {
    const target = this.#accepted
    this.#retryNow?.()
    while (this.#written < target) await this.#writeBatch()
  }

  /**
   * Takes no more entries and writes those that wait.
   *
   * @param timeoutMs how long that may take; what is left then is dropped and counted.
   */
  async close(timeoutMs = 5000): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#retention?.stop()
    clearTimeout(this.#timer)
    await within(timeoutMs, this.flush(), () => {})
    if (this.#queue.length === 0) return
    const lost = this.#queue.length
    this.#dropped += lost
    this.#written += lost
    this.#queue.length = 0
    this.#retryNow?.()
    this.#logger.error({ lost }, 'call log: closed before all entries could be written')
  }

  #schedule(): void {
    if (this.#writing || this.#closed) return
    if (this.#queue.length >= this.#batchSize) void this.#writeBatch()
    else this.#timer ??= setTimeout(() => void this.#writeBatch(), this.#flushMs).unref()
  }

  /** Writes one batch; on failure it stays queued, and the wait for the next try is part of this one. Never rejects. */
  #writeBatch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#tryBatch()
    return this.#writing
  }

  async #tryBatch(): Promise<void> {
    const batch = this.#queue.slice(0, this.#batchSize)
    try {
      await this.#store.append(batch)
      // Emptied meanwhile if closing ran out of time.
      if (this.#queue[0] === batch[0]) {
        this.#queue.splice(0, batch.length)
        this.#written += batch.length
      }
      this.#retryMs = 0
      if (this.#troubleSince !== undefined) this.#endTrouble(this.#troubleSince)
    } catch (error) {
      this.#beginTrouble(
        { err: error, queued: this.#queue.length },
        'call log: the store fails, entries wait',
      )
      await this.#retryPause()
    } finally {
      this.#writing = undefined
      if (this.#queue.length > 0) this.#schedule()
    }
  }

  async #retryPause(): Promise<void> {
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2 || FIRST_RETRY_MS)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#retryMs).unref()
      this.#retryNow = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#retryNow = undefined
  }

  #beginTrouble(fields: object, message: string): void {
    if (this.#troubleSince !== undefined) return
    this.#troubleSince = this.#dropped
    this.#logger.error(fields, message)
  }

  /** Not before the queue has room again: a store that is only too slow would else be logged with every batch. */
  #endTrouble(droppedBefore: number): void {
    if (this.#queue.length * 2 > this.#maxQueue) return
    const dropped = this.#dropped - droppedBefore
    this.#troubleSince = undefined
    this.#logger.warn({ dropped }, 'call log: entries are written again')
  }
}
