import type { Logger } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'

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
  #timer: NodeJS.Timeout | undefined
  #failing = false
  #stopped = false

  constructor(options: RetentionOptions) {
    if (!(options.keepEntriesMs > 0))
      throw new TypeError('CallLogWriter: "keepEntriesMs" must be above 0, or null')
    this.#options = options
    this.#keepEntriesMs = options.keepEntriesMs
    this.#schedule(FIRST_MS)
  }

  keepFor(keepEntriesMs: number): void {
    if (keepEntriesMs === this.#keepEntriesMs) return
    this.#keepEntriesMs = keepEntriesMs
    this.#schedule(PAUSE_MS)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#prune(), ms).unref()
  }

  async #prune(): Promise<void> {
    const { store, logger } = this.#options
    let pruned = 0
    try {
      pruned = await store.prune(Date.now() - this.#keepEntriesMs, BATCH_SIZE)
      this.#failing = false
    } catch (error) {
      if (!this.#failing) logger.error({ err: error }, 'call log: old entries could not be deleted')
      this.#failing = true
    }
    this.#schedule(pruned === BATCH_SIZE ? PAUSE_MS : INTERVAL_MS)
  }
}
