import type { Clock } from './clock.ts'

/** How long a pool waits, in milliseconds. */
export interface PoolTimes {
  /** How long a call waits to be admitted. Defaults to 1000, or ten times the least that the ledger has lately taken. */
  admissionMs?: number
  /**
   * No call is admitted while the oldest charge has waited for longer than this. Defaults to 500, or five times the least
   * that the ledger has lately taken.
   */
  stallMs?: number
  /**
   * How long a call waits for its charge to be confirmed. Defaults to 1500, or fifteen times the least that the ledger has
   * lately taken.
   */
  confirmMs?: number
}

/** What an operation takes at the least is looked for so long, in milliseconds. */
const WINDOW_MS = 15_000
/** A ledger that takes longer is not far away, but slow. */
const FARTHEST_MS = 500

/**
 * How long a pool waits for its ledger, in milliseconds: as long as its options say, or else the longer the farther the ledger
 * is away.
 */
export class LedgerTimes {
  readonly #given: PoolTimes
  readonly #clock: Clock
  #since: number
  /** The shortest operations of this window and of the one before it. */
  #least = 0
  #leastBefore = Number.POSITIVE_INFINITY

  constructor(given: PoolTimes, clock: Clock) {
    this.#given = given
    this.#clock = clock
    this.#since = clock.now()
  }

  /** Records how long the ledger took for an operation. */
  answered(ms: number): void {
    const now = this.#clock.now()
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now
      this.#leastBefore = this.#least
      this.#least = ms
    } else if (this.#least === 0 || ms < this.#least) this.#least = ms
  }

  /** How long a call waits to be admitted. */
  get admissionMs(): number {
    return this.#given.admissionMs ?? Math.max(1000, 10 * this.#distanceMs)
  }

  /** No call is admitted while the oldest charge has waited for longer than this, or lease changes have failed for as long. */
  get stallMs(): number {
    return this.#given.stallMs ?? Math.max(500, 5 * this.#distanceMs)
  }

  /** How long a settlement may take before the others go around it. */
  get lateMs(): number {
    return this.stallMs / 2
  }

  /** How long a call waits for its charge. */
  get confirmMs(): number {
    return this.#given.confirmMs ?? Math.max(1500, 15 * this.#distanceMs)
  }

  get #distanceMs(): number {
    return Math.min(this.#least, this.#leastBefore, FARTHEST_MS)
  }
}
