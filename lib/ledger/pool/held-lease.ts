/** The owner stops using a lease that long after it asked for its last confirmed renewal, in milliseconds. */
const USABLE_MS = 25_000

/** A lease of this process. In the ledger it holds `free`, `reserved` and `drawing` together, as far as is known. */
export class HeldLease {
  readonly id: string
  /** What calls may still be admitted on or settle from. */
  free = 0n
  /** Held for calls that run. */
  reserved = 0n
  /** Taken out by charges of which the ledger has not told yet. */
  drawing = 0n
  /** Of the last change; 0 where the ledger does not have the lease yet. */
  seq = 0
  /** Gone, or given up: nothing is admitted on it any more; calls that run on it settle. */
  lost = false
  /** When the last confirmed renewal was asked for, by both clocks. */
  #confirmedNow = Number.NEGATIVE_INFINITY
  #confirmedWall = Number.NEGATIVE_INFINITY

  constructor(id: string) {
    this.id = id
  }

  /** What it holds for the calls of this process. */
  get granted(): bigint {
    return this.free + this.reserved
  }

  /** Whether nothing hangs on it. */
  get empty(): boolean {
    return this.granted === 0n && this.drawing === 0n
  }

  /** Notes that a renewal or a change that was asked for then has been confirmed. */
  confirm({ now, wall }: { readonly now: number; readonly wall: number }): void {
    if (now <= this.#confirmedNow) return
    this.#confirmedNow = now
    this.#confirmedWall = wall
  }

  /** Whether nobody can have swept it, by the clock that says more. */
  isUsable(now: number, wall: number): boolean {
    return !this.lost && now - this.#confirmedNow < USABLE_MS && wall - this.#confirmedWall < USABLE_MS
  }
}
