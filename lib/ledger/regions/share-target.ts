import { TopUpPolicy } from '../pool/held-lease.ts'
import type { Share } from './region-store.ts'

/** A share should hold the spending of this time, in seconds: for so long it serves while home is away. */
const SHARE_SECONDS = 60
/** A share that nobody has used for this long goes back, in milliseconds. */
const IDLE_MS = 15_000
/** A share is at most this part of the balance: other regions, and home itself, need some of it. */
const MAX_PART = 4n

/** What to ask a home for, and what to return. */
export interface ShareMove {
  readonly want: bigint
  readonly give: bigint
}

const NOTHING: ShareMove = { want: 0n, give: 0n }

/**
 * Decides how much of a wallet a region should have: about a minute of its spending, and twice what its processes hold. Amounts
 * are nano-units, times are those of one clock.
 */
export class ShareTarget {
  readonly #policy: TopUpPolicy
  #spent: bigint
  #usedAt: number

  constructor({ spent }: Share, now: number) {
    this.#policy = new TopUpPolicy(now, SHARE_SECONDS)
    this.#spent = spent
    this.#usedAt = now
  }

  /** Whether nobody has used the share for a while. */
  isIdle(now: number): boolean {
    return now - this.#usedAt >= IDLE_MS
  }

  /** Runs about once a second, with the share as it is. */
  next({ limited, funds, spent, leased, elsewhere }: Share, now: number): ShareMove {
    const balance = funds - spent
    const free = balance - leased
    if (spent > this.#spent) this.#policy.spent += spent - this.#spent
    if (spent !== this.#spent || leased > 0n) this.#usedAt = now
    this.#spent = spent
    this.#policy.admitted(0n, leased, free)
    this.#policy.tick(now, leased, free)
    if (!limited || this.isIdle(now)) return free > 0n ? this.#giving(free) : NOTHING
    const spare = this.#policy.spare({ free, granted: balance })
    if (spare > 0n) return this.#giving(spare)
    const most = (balance + elsewhere) / MAX_PART - balance
    const lacks = this.#policy.lacks(balance > 0n ? balance : 0n)
    const want = lacks < most ? lacks : most
    return want > 0n ? { want, give: 0n } : NOTHING
  }

  #giving(give: bigint): ShareMove {
    this.#policy.restart()
    return { want: 0n, give }
  }
}
