import type { Logger } from '../../core/call/index.ts'
import type { Clock } from './clock.ts'

/** What a {@link LedgerHealth} works with. */
export interface LedgerHealthDeps {
  readonly clock: Clock
  readonly logger: Logger
  /** How long lease changes may fail before the ledger counts as away, in milliseconds. */
  readonly stallMs: number
  readonly onAwayChange: (away: boolean) => void
}

/** While the ledger does not answer, one admission in this time waits for it, in milliseconds. */
const TRIAL_MS = 500

/**
 * Knows whether the ledger is away: charges wait for too long, or it does not answer what leases are asked for. Tells when
 * it goes away and when it is back, with one line each.
 */
export class LedgerHealth {
  /** How often it went away, for metrics. */
  outages = 0
  readonly #deps: LedgerHealthDeps
  #stalled = false
  #silent = false
  #failingSince: number | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #awaySince: number | undefined

  constructor(deps: LedgerHealthDeps) {
    this.#deps = deps
  }

  get away(): boolean {
    return this.#stalled || this.#silent
  }

  /** Whether it does not answer what leases are asked for. */
  get silent(): boolean {
    return this.#silent
  }

  /** Whether an admission may wait for an answer. */
  mayAsk(): boolean {
    if (!this.#silent) return true
    const now = this.#deps.clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  /** Notes that it has answered what leases were asked for. */
  answered(): void {
    this.#failingSince = undefined
    this.#silent = false
    this.#judge()
  }

  /** Notes that it has failed to answer that. */
  failed(error: unknown): void {
    const now = this.#deps.clock.now()
    this.#failingSince ??= now
    if (now - this.#failingSince < this.#deps.stallMs) return
    this.#silent = true
    this.#judge(error)
  }

  /** Notes that it has not answered for longer than anybody waits. */
  late(): void {
    this.#failingSince ??= this.#deps.clock.now()
    this.#silent = true
    this.#judge()
  }

  /** Notes whether charges wait for too long; `error` is what they failed with last. */
  stall(stalled: boolean, error: unknown): void {
    this.#stalled = stalled
    this.#judge(error)
  }

  #judge(error?: unknown): void {
    const { away } = this
    if (away === (this.#awaySince !== undefined)) return
    const { clock, logger } = this.#deps
    if (this.#awaySince === undefined) {
      this.#awaySince = clock.now()
      this.outages++
      logger.error({ err: error }, 'ledger is away')
    } else {
      const forMs = Math.round(clock.now() - this.#awaySince)
      this.#awaySince = undefined
      logger.warn({ forMs }, 'ledger is back')
    }
    this.#notify(away)
  }

  /** A listener that fails is not the ledger's failure. */
  #notify(away: boolean): void {
    try {
      this.#deps.onAwayChange(away)
    } catch (error) {
      this.#deps.logger.error({ err: error }, 'a listener to outages of the ledger failed')
    }
  }
}
