import { Distance } from '../../core/store-guard/index.ts'
import type { Clock } from './clock.ts'

/** How long a pool waits, in milliseconds. */
export interface PoolTimes {
  /** How long a call waits to be admitted. Defaults to 1000, or ten times the least that the ledger has lately taken. */
  admissionMs?: number
  /**
   * No call is admitted while the oldest charge has waited for longer than this. Defaults to 500, or eight times the least
   * that the ledger has lately taken.
   */
  stallMs?: number
  /**
   * How long a call waits for its charge to be confirmed. Defaults to 1500, or fifteen times the least that the ledger has
   * lately taken.
   */
  confirmMs?: number
}

/**
 * How long a pool waits for its ledger, in milliseconds: as long as its options say, or else the longer the farther the ledger
 * is away. On a busy machine they are longer.
 */
export class LedgerTimes {
  readonly #given: PoolTimes
  readonly #clock: Clock
  readonly #distance: Distance

  constructor(given: PoolTimes, clock: Clock) {
    this.#given = given
    this.#clock = clock
    this.#distance = new Distance(() => clock.now())
  }

  /** Records how long the ledger took for an operation. */
  answered(ms: number): void {
    // Of a ledger that has become slow, every answer is late. It is no outage.
    if (ms > this.lateMs) this.#distance.reset(ms)
    else this.#distance.answered(ms)
  }

  /** How long a call waits to be admitted. */
  get admissionMs(): number {
    return this.#clock.limit(this.#given.admissionMs ?? Math.max(1000, 10 * this.distanceMs))
  }

  /** No call is admitted while the oldest charge has waited for longer than this, or lease changes have failed for as long. */
  get stallMs(): number {
    return this.#clock.limit(this.#given.stallMs ?? Math.max(500, 8 * this.distanceMs))
  }

  /** How long a settlement may take before the others go around it. */
  get lateMs(): number {
    return this.stallMs / 2
  }

  /** How long a call waits for its charge. */
  get confirmMs(): number {
    return this.#clock.limit(this.#given.confirmMs ?? Math.max(1500, 15 * this.distanceMs))
  }

  /** How far away the ledger is. */
  get distanceMs(): number {
    return this.#distance.ms
  }
}
