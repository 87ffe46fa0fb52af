import type { IdempotencyClaim, RunningClaim } from '../../core/call/index.ts'

/** A moment on both clocks: the monotonic one stands still while a machine sleeps, the other may be set. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentNow(): Moment {
  return { monotonic: performance.now(), wall: Date.now() }
}

/** A claim of this process, and when it was last known to be held. */
export class HeldClaim implements RunningClaim {
  readonly id: string
  readonly owner: string
  readonly keepMs: number
  state: RunningClaim['state'] = 'running'
  #confirmed: Moment

  /** @param askedAt when the claim was asked for: the lease cannot be younger than that. */
  constructor({ id, owner }: IdempotencyClaim, keepMs: number, askedAt: Moment) {
    this.id = id
    this.owner = owner
    this.keepMs = keepMs
    this.#confirmed = askedAt
  }

  /** A renewal that was asked for then has been confirmed. */
  confirm(askedAt: Moment): void {
    this.#confirmed = askedAt
  }

  /** Milliseconds since the last confirmed renewal was asked for, by the clock that says more. */
  get age(): number {
    const { monotonic, wall } = this.#confirmed
    return Math.max(performance.now() - monotonic, Date.now() - wall)
  }
}
