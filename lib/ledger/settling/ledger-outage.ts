import type { Logger } from '../../core/call/index.ts'
import type { Clock } from '../pool/clock.ts'

/** What a {@link LedgerOutage} works with. */
export interface LedgerOutageOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly onAwayChange: (away: boolean) => void
}

/** Tells when the ledger goes away and when it is back: one line each. */
export class LedgerOutage {
  readonly #options: LedgerOutageOptions
  #since: number | undefined
  #count = 0

  constructor(options: LedgerOutageOptions) {
    this.#options = options
  }

  /** Outages so far, for metrics. */
  get count(): number {
    return this.#count
  }

  /** @param error what was thrown last, where it is away. */
  judge(away: boolean, error?: unknown): void {
    if (away === (this.#since !== undefined)) return
    const { clock, logger } = this.#options
    if (this.#since === undefined) {
      this.#since = clock.now()
      this.#count++
      logger.error({ err: error }, 'ledger is away')
    } else {
      const forMs = Math.round(clock.now() - this.#since)
      this.#since = undefined
      logger.warn({ forMs }, 'ledger is back')
    }
    this.#tell(away)
  }

  /** A listener that fails is not the ledger's failure. */
  #tell(away: boolean): void {
    try {
      this.#options.onAwayChange(away)
    } catch (error) {
      this.#options.logger.error({ err: error }, 'a listener to outages of the ledger failed')
    }
  }
}
