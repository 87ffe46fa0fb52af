import { RecentCounts } from '../lines/recent-counts.ts'

const WINDOW_SECONDS = 10
/** Retries per second that are always allowed. */
const FREE_PER_SECOND = 10
/** Beyond those, the largest share of retries among the calls of the window. */
const MAX_SHARE = 0.2

/** Limits retries, so that an outage of all lines does not multiply the requests. It counts all calls, and marks retries. */
export class RetryBudget extends RecentCounts {
  constructor() {
    super(1000, WINDOW_SECONDS)
  }

  /** Takes one retry from the budget; returns false if none is left. */
  takeRetry(): boolean {
    const { all: calls, marked: retries } = this.totals
    if (this.markedNow >= FREE_PER_SECOND && retries + 1 > MAX_SHARE * calls) return false
    this.count(0, 1)
    return true
  }
}
