import { MAX_AMOUNT } from '../../core/catalog/money.ts'
import type { WalletState } from '../ledger.ts'

/**
 * How long a report that a wallet is not limited may be used, in milliseconds; a wallet in use is asked about sooner.
 */
const BELIEVED_MS = 4900
const ASK_AGAIN_MS = 3000
/** How long the available amount may be used to decide how much to ask for, in milliseconds. */
const AVAILABLE_MS = 1000
/** If others could take less than this many calls like the last, only what is needed now is held. */
const POOR_CALLS = 10n

/** The last report of the ledger about a wallet. */
export class WalletSnapshot {
  /** Whether the wallet limits spending; undefined before the first report. */
  limited: boolean | undefined
  /** The amount that is neither leased nor spent; of a wallet without a limit, what 64 bits hold beside what is spent. */
  available = 0n
  /** The amount that would be available if all leases were returned. */
  balance = 0n
  /** A call that can cost more than this leaves others too little. */
  poorBeyond = 0n
  /** Whether the rest of the balance is where nobody answers. */
  away = false
  /** When the ledger was asked; its report is at least this recent. */
  #askedAt = Number.NEGATIVE_INFINITY

  /** @param state undefined if the ledger does not know the wallet, whose calls are refused then. */
  update(state: WalletState | undefined, askedAt: number): void {
    const { limited, funds, spent, leased } = state ?? { limited: true, funds: 0n, spent: 0n, leased: 0n }
    const available = limited ? funds - spent - leased : MAX_AMOUNT - spent
    this.limited = limited
    this.available = available > 0n ? available : 0n
    this.balance = funds - spent
    this.away = state?.away === true
    this.poorBeyond = this.available / POOR_CALLS
    this.#askedAt = askedAt
  }

  /** Whether the wallet is known to be unlimited. */
  isUnlimited(now: number): boolean {
    return this.limited === false && now - this.#askedAt < BELIEVED_MS
  }

  /** Whether the last report, however old, told of nothing that could be spent. */
  isEmpty(unhanded: bigint): boolean {
    return this.limited === true && this.balance <= unhanded
  }

  /** Returns the amount that others leave; undefined if the report is too old. */
  availableAt(now: number): bigint | undefined {
    return this.limited && now - this.#askedAt < AVAILABLE_MS ? this.available : undefined
  }

  /** Whether calls use a report that should be refreshed. */
  isOld(now: number, usedAt: number): boolean {
    return now - this.#askedAt > ASK_AGAIN_MS && usedAt > this.#askedAt
  }
}
