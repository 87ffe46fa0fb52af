import { RollingCounts } from '../lines/rolling-counts.ts'

const WINDOW_SECONDS = 10
/** Retries per second that are always allowed. */
const FREE_PER_SECOND = 10
/** Beyond those, the largest share of retries among the calls of the window. */
const MAX_SHARE = 0.2

/** Limits retries, so that an outage of all lines does not multiply the requests. */
export class RetryBudget {
  /** Counts all calls, and marks retries. */
  readonly #counts = new RollingCounts(1000, WINDOW_SECONDS)

  noteCall(): void {
    this.#counts.count(1, 0)
  }

  /** Takes one retry from the budget; returns false if none is left. */
  takeRetry(): boolean {
    const { all: calls, marked: retries } = this.#counts.totals
    if (this.#counts.markedNow >= FREE_PER_SECOND && retries + 1 > MAX_SHARE * calls) return false
    this.#counts.count(0, 1)
    return true
  }
}
