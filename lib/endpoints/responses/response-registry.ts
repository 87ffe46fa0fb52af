import { consoleLogger, type Logger } from '../../core/call/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { MemoryResponseStore } from './memory-response-store.ts'
import type { ResponseRecord, ResponseStore } from './response-store.ts'

/** Options of {@link ResponseRegistry}. */
export interface ResponseRegistryOptions {
  /** The store of records. Defaults to this process's memory. */
  store?: ResponseStore
  /** How long a response can be found after it was made, in milliseconds. Defaults to 30 days. */
  keepMs?: number
  /** How long an operation of the store may take before the store counts as away, in milliseconds. Defaults to 1500. */
  storeTimeoutMs?: number
  /** Logs outages. Defaults to the console. */
  logger?: Logger
  /** Called when the store goes away and when it is back, for metrics. */
  onStoreChange?: (away: boolean) => void
}

const PRUNE_INTERVAL_MS = 10 * 60_000
const BATCH_PAUSE_MS = 50
const BATCH_SIZE = 500

/**
 * Records which line made which response. Close it at shutdown.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const registry = new ResponseRegistry({ store: new SqlResponseStore(db) })
 * app.post('/v1/responses', readRequest({ catalog }), pinResponse({ registry }), route({ catalog }))
 */
export class ResponseRegistry {
  readonly #store: ResponseStore
  readonly #guard: StoreGuard
  readonly #keepMs: number
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ResponseRegistryOptions = {}) {
    const { store = new MemoryResponseStore(), keepMs = 30 * 86_400_000, storeTimeoutMs = 1500 } = options
    const { logger = consoleLogger, onStoreChange } = options
    if (typeof store?.remember !== 'function') {
      throw new TypeError(
        'ResponseRegistry: "store" must be a ResponseStore, such as new MemoryResponseStore()',
      )
    }
    for (const [name, ms] of Object.entries({ keepMs, storeTimeoutMs })) {
      if (!(Number.isSafeInteger(ms) && ms > 0))
        throw new TypeError(`ResponseRegistry: "${name}" must be a positive whole number of milliseconds`)
    }
    this.#store = store
    this.#keepMs = keepMs
    this.#guard = new StoreGuard({
      name: 'responses',
      logger,
      timeoutMs: storeTimeoutMs,
      ...(onStoreChange && { onChange: onStoreChange }),
    })
    this.#schedule(PRUNE_INTERVAL_MS)
  }

  /**
   * Checks that a response can be recorded. Returns undefined while the store works; while it is away, tries it.
   *
   * @throws {StoreAway} as a rejection if the store is still away.
   */
  ready(): Promise<void> | undefined {
    if (!this.#guard.away) return undefined
    return this.#guard.run(() => this.#store.find('', '')).then(() => {})
  }

  /** @throws {StoreAway} if the store did not confirm the record. */
  remember(record: ResponseRecord): Promise<void> {
    return this.#guard.run(() => this.#store.remember(record))
  }

  /**
   * Returns the record of an account's response; undefined if there is none or it has expired.
   *
   * @throws {StoreAway} if the store is away.
   */
  async find(account: string, id: string): Promise<ResponseRecord | undefined> {
    const record = await this.#guard.run(() => this.#store.find(account, id))
    return record && record.createdAt > Date.now() - this.#keepMs ? record : undefined
  }

  /** @throws {StoreAway} if the store did not confirm the deletion. */
  forget(account: string, id: string): Promise<void> {
    return this.#guard.run(() => this.#store.forget(account, id))
  }

  /** Stops deleting expired records. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    if (!this.#closed) this.#timer = setTimeout(() => void this.#prune(), ms).unref()
  }

  /** Deletes expired records in batches with pauses, so that other operations do not wait long for the store. */
  async #prune(): Promise<void> {
    const before = Date.now() - this.#keepMs
    // The guard has logged the outage; the next round tries again.
    const pruned = await this.#guard.run(() => this.#store.prune(before, BATCH_SIZE)).catch(() => 0)
    this.#schedule(pruned === BATCH_SIZE ? BATCH_PAUSE_MS : PRUNE_INTERVAL_MS)
  }
}
