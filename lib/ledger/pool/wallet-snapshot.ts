import type { WalletState } from '../ledger.ts'

/** That a wallet is not limited may be believed that long, in milliseconds; one in use is asked about sooner. */
const BELIEVED_MS = 4900
const ASK_AGAIN_MS = 3000
/** What was available is believed that long when it is decided how much to ask for. */
const AVAILABLE_MS = 1000
/** Where others could take less than that many calls such as the last, nothing is kept that is not needed now. */
const POOR_CALLS = 10n

/** How a wallet stood when the ledger last told of it. */
export class WalletSnapshot {
  /** Whether it bounds what is spent; undefined where the ledger has told nothing yet. */
  limited: boolean | undefined
  /** What all leases and charges leave. */
  available = 0n
  /** What there would be with all leases given back. */
  balance = 0n
  /** A call that can cost more than this leaves others too little. */
  poorBeyond = 0n
  /** When the ledger was asked: what it told cannot be younger. */
  #askedAt = Number.NEGATIVE_INFINITY

  /** @param state undefined where the ledger knows no such wallet, which then is not served. */
  update(state: WalletState | undefined, askedAt: number): void {
    const { limited, funds, spent, leased } = state ?? { limited: true, funds: 0n, spent: 0n, leased: 0n }
    const available = funds - spent - leased
    this.limited = limited
    this.available = available > 0n ? available : 0n
    this.balance = funds - spent
    this.poorBeyond = this.available / POOR_CALLS
    this.#askedAt = askedAt
  }

  /** Whether it may be relied on that the wallet is not limited. */
  isUnlimited(now: number): boolean {
    return this.limited === false && now - this.#askedAt < BELIEVED_MS
  }

  /** What others leave, where they have hardly had time to change it. */
  availableAt(now: number): bigint | undefined {
    return this.limited && now - this.#askedAt < AVAILABLE_MS ? this.available : undefined
  }

  /** Whether calls rely on what was told a while ago, and it should be asked for again. */
  isOld(now: number, usedAt: number): boolean {
    return now - this.#askedAt > ASK_AGAIN_MS && usedAt > this.#askedAt
  }
}
