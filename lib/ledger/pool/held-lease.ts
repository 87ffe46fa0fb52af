/** The owner stops using a lease this long after it asked for the last confirmed renewal, in milliseconds. */
const USABLE_MS = 25_000

/** A lease of this process. As far as is known, the ledger has `granted` and what is drawn in it. */
export class HeldLease {
  readonly id: string
  /** The amount for further calls. */
  free = 0n
  /** The amount that is held for running calls. */
  reserved = 0n
  /** The number of charges that have drawn on it and that the ledger has not confirmed. */
  drawing = 0
  /** The number of the last change; 0 if the ledger does not have the lease yet. */
  seq = 0
  /** Whether the lease was swept or given up. No more calls are admitted on it; running calls settle from it. */
  lost = false
  /** When the last confirmed renewal was asked for, by both clocks. */
  #confirmedNow = Number.NEGATIVE_INFINITY
  #confirmedWall = Number.NEGATIVE_INFINITY

  constructor(id: string) {
    this.id = id
  }

  /** The amount in the lease for the calls of this process. */
  get granted(): bigint {
    return this.free + this.reserved
  }

  /** Whether nothing uses the lease. */
  get empty(): boolean {
    return this.granted === 0n && this.drawing === 0
  }

  /** Records that a renewal or change was confirmed, which was asked for at the given time. */
  confirm({ now, wall }: { readonly now: number; readonly wall: number }): void {
    if (now <= this.#confirmedNow) return
    this.#confirmedNow = now
    this.#confirmedWall = wall
  }

  /** Whether no process can have swept the lease. Of the two clocks, the one that shows more time counts. */
  isUsable(now: number, wall: number): boolean {
    return !this.lost && now - this.#confirmedNow < USABLE_MS && wall - this.#confirmedWall < USABLE_MS
  }
}
