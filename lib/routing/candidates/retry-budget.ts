import { RollingCounts } from '../lines/rolling-counts.ts'

const WINDOW_SECONDS = 10
/** Retries a second that are free whatever the load. */
const FREE_PER_SECOND = 10
/** Beyond those, retries are at most this share of the calls of the last ten seconds. */
const SHARE = 0.2

/** Keeps retries from multiplying an outage: every line down must not mean every request sent thrice. */
export class RetryBudget {
  /** Calls, and as marked ones their retries. */
  readonly #counts = new RollingCounts(1000, WINDOW_SECONDS)

  noteCall(): void {
    this.#counts.count(1, 0)
  }

  /** Takes one retry out of the budget; false when there is none. */
  takeRetry(): boolean {
    const { all: calls, marked: retries } = this.#counts.totals
    if (this.#counts.markedNow >= FREE_PER_SECOND && retries + 1 > SHARE * calls) return false
    this.#counts.count(0, 1)
    return true
  }
}
