import type { Logger } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'

interface RetentionOptions {
  store: CallStore
  logger: Logger
  /** How long entries are kept, in milliseconds. */
  keepEntriesMs: number
}

const INTERVAL_MS = 10 * 60_000
/** Soon after a start, because some processes do not live for ten minutes. */
const FIRST_MS = 15_000
const PAUSE_MS = 50
const BATCH_SIZE = 500

/**
 * Deletes expired entries, soon after the start and then every ten minutes, in batches with pauses, so that other
 * queries do not wait long. Several processes may do so on one store.
 */
export class Retention {
  readonly #options: RetentionOptions
  #keepEntriesMs: number
  readonly #pruning: BackgroundLoop
  #failing = false

  constructor(options: RetentionOptions) {
    if (!(options.keepEntriesMs > 0))
      throw new TypeError('CallLogWriter: "keepEntriesMs" must be above 0, or null')
    this.#options = options
    this.#keepEntriesMs = options.keepEntriesMs
    this.#pruning = new BackgroundLoop(() => this.#prune(), INTERVAL_MS, FIRST_MS)
  }

  keepFor(keepEntriesMs: number): void {
    if (keepEntriesMs === this.#keepEntriesMs) return
    this.#keepEntriesMs = keepEntriesMs
    this.#pruning.runIn(PAUSE_MS)
  }

  stop(): void {
    void this.#pruning.close()
  }

  async #prune(): Promise<void> {
    const { store, logger } = this.#options
    try {
      const pruned = await store.prune(Date.now() - this.#keepEntriesMs, BATCH_SIZE)
      this.#failing = false
      if (pruned === BATCH_SIZE) this.#pruning.runIn(PAUSE_MS)
    } catch (error) {
      if (!this.#failing) logger.error({ err: error }, 'call log: old entries could not be deleted')
      this.#failing = true
    }
  }
}
