import { consoleLogger, type Logger } from '../../core/call/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { MemoryResponseStore } from './memory-response-store.ts'
import type { ResponseRecord, ResponseStore } from './response-store.ts'

/** Options of {@link ResponseKeeper}. */
export interface ResponseKeeperOptions {
  /** Where records are kept. Defaults to this process's memory. */
  store?: ResponseStore
  /** How long a response is known after it was made, in milliseconds. Defaults to 30 days. */
  keepMs?: number
  /** After how long without an answer the store counts as away, in milliseconds. Defaults to 1500. */
  storeTimeoutMs?: number
  /** Is told of outages. Defaults to the console. */
  logger?: Logger
  /** Is told when the store goes away and comes back, for metrics. */
  onStoreChange?: (away: boolean) => void
}

const ROUND_MS = 10 * 60_000
const PAUSE_MS = 50
const SLICE = 500

/**
 * Knows which line made which response. Close it at shutdown.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const keeper = new ResponseKeeper({ store: new SqlResponseStore(db) })
 * app.post('/v1/responses', readRequest({ catalog }), pinResponse({ keeper }), route({ catalog }))
 */
export class ResponseKeeper {
  readonly #store: ResponseStore
  readonly #guard: StoreGuard
  readonly #keepMs: number
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ResponseKeeperOptions = {}) {
    const { store = new MemoryResponseStore(), keepMs = 30 * 86_400_000, storeTimeoutMs = 1500 } = options
    const { logger = consoleLogger, onStoreChange } = options
    if (typeof store?.remember !== 'function') {
      throw new TypeError(
        'ResponseKeeper: "store" must be a ResponseStore, such as new MemoryResponseStore()',
      )
    }
    for (const [name, ms] of Object.entries({ keepMs, storeTimeoutMs })) {
      if (!(Number.isSafeInteger(ms) && ms > 0))
        throw new TypeError(`ResponseKeeper: "${name}" must be a positive whole number of milliseconds`)
    }
    this.#store = store
    this.#keepMs = keepMs
    this.#guard = new StoreGuard({
      name: 'responses',
      logger,
      timeoutMs: storeTimeoutMs,
      ...(onStoreChange && { onChange: onStoreChange }),
    })
    this.#schedule(ROUND_MS)
  }

  /**
   * Whether a response could be noted now. Undefined: yes, as far as is known; while the store is away it is asked.
   *
   * @throws {StoreAway} as a rejection, when it is still away.
   */
  ready(): Promise<void> | undefined {
    if (!this.#guard.away) return undefined
    return this.#guard.run(() => this.#store.find('', '')).then(() => {})
  }

  /** @throws {StoreAway} when it is not known to be noted. */
  remember(record: ResponseRecord): Promise<void> {
    return this.#guard.run(() => this.#store.remember(record))
  }

  /**
   * The response of an account; undefined where it has none with this id, or no longer.
   *
   * @throws {StoreAway} when that cannot be told.
   */
  async find(account: string, id: string): Promise<ResponseRecord | undefined> {
    const record = await this.#guard.run(() => this.#store.find(account, id))
    return record && record.createdAt > Date.now() - this.#keepMs ? record : undefined
  }

  /** @throws {StoreAway} when it is not known to be forgotten. */
  forget(account: string, id: string): Promise<void> {
    return this.#guard.run(() => this.#store.forget(account, id))
  }

  /** Ends the deleting of what has expired. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    if (!this.#closed) this.#timer = setTimeout(() => void this.#prune(), ms).unref()
  }

  /** In slices, with pauses between, so that nothing else waits long for the store. */
  async #prune(): Promise<void> {
    const before = Date.now() - this.#keepMs
    // The guard has told of the outage; the next round tries again.
    const pruned = await this.#guard.run(() => this.#store.prune(before, SLICE)).catch(() => 0)
    this.#schedule(pruned === SLICE ? PAUSE_MS : ROUND_MS)
  }
}
