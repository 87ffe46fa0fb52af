import type { LeaseChange } from '../ledger.ts'
import type { HeldLease } from './held-lease.ts'
import { bounded, least, takeFor } from './lease-demand.ts'
import type { LeaseSizing } from './lease-sizing.ts'
import type { WalletView } from './wallet-view.ts'

type Change = LeaseChange['change']

/** How a wallet stands with this process. */
export interface Standing {
  /** Undefined where there is none. */
  readonly lease: HeldLease | undefined
  /** Whether others could take so little that nothing is kept that is not needed now. */
  readonly isPoor: boolean
  /** Whether all is to go back. */
  readonly isEnding: boolean
}

/** Each time that others were faster, half as much is asked for, down to this power of it. */
const MOST_BEATEN = 4n

/** What a lease on a wallet should hold more or less of, and what the ledger is to be asked for that. */
export class LeaseWishes {
  readonly #view: WalletView
  readonly #sizing: LeaseSizing
  /** How often in a row others were faster to take what was available. */
  #beaten = 0n

  constructor(view: WalletView, sizing: LeaseSizing) {
    this.#view = view
    this.#sizing = sizing
  }

  /** What is to be added in the background, if it is worth a call. */
  lacks({ lease, isPoor, isEnding }: Standing): bigint {
    if (!this.#view.limited || isPoor || isEnding) return 0n
    return this.#sizing.lacks(lease?.granted ?? 0n)
  }

  /** What nobody here needs. */
  spare({ lease, isPoor, isEnding }: Standing): bigint {
    if (!lease) return 0n
    if (this.#view.limited === false || isPoor || isEnding) return lease.free
    return least(this.#sizing.spare(lease.granted), lease.free)
  }

  /** For calls that wait. */
  takeFor(amounts: readonly bigint[], { lease, isPoor }: Standing): Change {
    const { free, granted } = lease ?? { free: 0n, granted: 0n }
    const known = this.#view.limited && this.#view.isRecent
    const reach = known ? free + (this.#view.available >> this.#beaten) : undefined
    const target = isPoor ? 0n : this.#sizing.target
    return takeFor({ amounts, granted, free, reach, target })
  }

  /** Before calls need it; also to be told how a wallet stands that was used since. */
  takeAhead(standing: Standing, usedAt: number): Change | undefined {
    const want = this.lacks(standing)
    if (want === 0n && !this.#view.isOld(usedAt)) return undefined
    return { kind: 'take', need: 0n, want: bounded(want) }
  }

  give(standing: Standing): Change | undefined {
    const amount = this.spare(standing)
    if (amount > 0n) return { kind: 'give', amount }
    const { lease, isEnding } = standing
    // One that calls have used up is open still: giving nothing back closes it.
    const over = lease?.empty && lease.reserved === 0n && isEnding
    return over ? { kind: 'give', amount: 0n } : undefined
  }

  /** The ledger has moved that much of what was needed. */
  taken(moved: bigint, need: bigint): void {
    this.#beaten = moved === 0n && need > 0n ? least(this.#beaten + 1n, MOST_BEATEN) : 0n
  }
}
