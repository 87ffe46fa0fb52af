import type { IdempotencyClaim, RunningClaim } from '../../core/call/index.ts'

/** A moment on both clocks. The monotonic clock stands still while the machine sleeps; the wall clock may be set. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentNow(): Moment {
  return { monotonic: performance.now(), wall: Date.now() }
}

/** A claim of this process, with the time of its last confirmed renewal. */
export class HeldClaim implements RunningClaim {
  readonly id: string
  readonly owner: string
  readonly keepMs: number
  state: RunningClaim['state'] = 'running'
  /** The answer for repetitions, until the store has confirmed it. */
  answer: string | undefined
  #confirmed: Moment

  /** @param askedAt when the claim was requested. Its lease begins then or later. */
  constructor({ id, owner }: IdempotencyClaim, keepMs: number, askedAt: Moment) {
    this.id = id
    this.owner = owner
    this.keepMs = keepMs
    this.#confirmed = askedAt
  }

  /** Notes a confirmed renewal. */
  confirm(askedAt: Moment): void {
    this.#confirmed = askedAt
  }

  /** Milliseconds since the last confirmed renewal was asked for, by the clock that shows more. */
  get age(): number {
    const { monotonic, wall } = this.#confirmed
    return Math.max(performance.now() - monotonic, Date.now() - wall)
  }
}
