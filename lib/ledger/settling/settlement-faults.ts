import { backoffMs, FAILURES_ALONE, type Place } from './waiting-settlements.ts'

/**
 * Whose fault it is that a settlement fails, and when to try again: the ledger may be away, or the settlement may be one
 * that it can never take.
 */
export class SettlementFaults {
  #settled = 0
  #inARow = 0
  #lastError: unknown
  #resumeAt = Number.NEGATIVE_INFINITY

  get lastError(): unknown {
    return this.#lastError
  }

  /** Nothing is handed over before. Milliseconds of the clock. */
  get resumeAt(): number {
    return this.#resumeAt
  }

  settled(many: number): void {
    this.#inARow = 0
    this.#settled += many
  }

  failed(error: unknown): void {
    this.#lastError = error
  }

  /** One that was handed over alone failed. It is itself at fault where it fails again and again while others are settled. */
  isAtFault(place: Place, now: number): boolean {
    if (place.failures++ === 0) place.settledBefore = this.#settled
    if (place.failures >= FAILURES_ALONE && this.#settled > place.settledBefore) return true
    this.#inARow++
    this.#resumeAt = now + backoffMs(this.#inARow)
    return false
  }
}
