import type { Clock, Moment } from '../pool/clock.ts'

/** The owner stops using a lease that long after it asked for its last confirmed renewal, in milliseconds. */
const USABLE_MS = 25_000

/** For metrics; counted over the life of the pool. */
export interface LeaseFigures {
  /** Leases that were gone when they were needed, or were given up. */
  lost: number
  /** Charges that drew on one of those. */
  overruns: number
}

/**
 * A lease of this process. The ledger's lease holds `granted` and `drawing` together, as far as is known; what is in
 * `reserved` is a part of `granted`.
 */
export class HeldLease {
  readonly id: string
  /** What calls may still be admitted on or settle from. */
  granted = 0n
  /** Held for calls that run. */
  reserved = 0n
  /** Taken out by charges of which the ledger has not told yet. */
  drawing = 0n
  /** Of the last change; 0 where the ledger does not have the lease yet. */
  seq = 0
  /** Gone, or given up: nothing is admitted on it any more; calls that run on it settle. */
  lost = false
  #confirmed: Moment | undefined

  constructor(id: string) {
    this.id = id
  }

  get free(): bigint {
    return this.granted - this.reserved
  }

  /** Whether nothing hangs on it. */
  get empty(): boolean {
    return this.granted === 0n && this.drawing === 0n
  }

  /** A renewal or a change that was asked for then has been confirmed. */
  confirm(asked: Moment): void {
    if (!this.#confirmed || asked.now > this.#confirmed.now) this.#confirmed = asked
  }

  /** Whether nobody can have swept it, by the clock that says more. */
  isUsable(clock: Clock): boolean {
    if (this.lost || !this.#confirmed) return false
    const { now, wall } = this.#confirmed
    return clock.now() - now < USABLE_MS && clock.wall() - wall < USABLE_MS
  }
}
