import type { Logger } from '../../core/call/index.ts'
import { notify } from '../../core/options/index.ts'
import { Outage } from '../../core/store-guard/index.ts'
import type { Clock } from './clock.ts'
import type { LedgerTimes } from './ledger-times.ts'

/** The parts that {@link LedgerHealth} works with. */
export interface LedgerHealthDeps {
  readonly clock: Clock
  readonly logger: Logger
  readonly times: Pick<LedgerTimes, 'stallMs'>
  readonly onStoreChange: (away: boolean) => void
}

const EFFECT = 'calls that cost money are refused with billing_unavailable'
/** While the ledger does not answer, one call per this time waits for it, in milliseconds. */
const TRIAL_MS = 500

/**
 * Tracks whether the ledger is away: charges have waited for too long, or lease changes get no answer. Logs one line
 * when an outage begins and one when it ends.
 */
export class LedgerHealth {
  /** The number of outages, for metrics. */
  outages = 0
  readonly #deps: LedgerHealthDeps
  #stalled = false
  #silent = false
  #failingSince: number | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  readonly #outage: Outage

  constructor(deps: LedgerHealthDeps) {
    this.#deps = deps
    const { clock, logger } = deps
    this.#outage = new Outage({ store: 'ledger', effect: EFFECT, logger, now: () => clock.now() })
  }

  get away(): boolean {
    return this.#stalled || this.#silent
  }

  /** Whether lease changes get no answer. */
  get silent(): boolean {
    return this.#silent
  }

  /** Whether a call may wait for an answer. */
  mayAsk(): boolean {
    if (!this.#silent) return true
    const now = this.#deps.clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  /** Records an answer to lease changes. */
  answered(): void {
    this.#failingSince = undefined
    this.#silent = false
    this.#judge()
  }

  /** Records a failure of lease changes. */
  failed(error: unknown): void {
    const now = this.#deps.clock.now()
    this.#failingSince ??= now
    if (now - this.#failingSince < this.#deps.times.stallMs) return
    this.#silent = true
    this.#judge(error)
  }

  /** Records that lease changes got no answer for longer than calls wait. */
  late(): void {
    this.#failingSince ??= this.#deps.clock.now()
    this.#silent = true
    this.#judge()
  }

  /** Records whether charges have waited for too long; `error` is their last failure. */
  stall(stalled: boolean, error: unknown): void {
    this.#stalled = stalled
    this.#judge(error)
  }

  #judge(error?: unknown): void {
    const { away } = this
    if (away === this.#outage.isOn) return
    if (away) {
      this.outages++
      this.#outage.begins(error)
    } else this.#outage.ends()
    this.#notify(away)
  }

  /** Calls the listener. Its failure is not the ledger's. */
  #notify(away: boolean): void {
    const { logger, onStoreChange } = this.#deps
    notify(logger, 'a listener to outages of the ledger failed', () => onStoreChange(away))
  }
}
