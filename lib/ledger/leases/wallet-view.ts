import type { WalletState } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'

/** That a wallet is not limited may be believed that long, in milliseconds; one in use is asked about sooner. */
const BELIEVED_MS = 4900
const ASK_AGAIN_MS = 3000
/** What was available is believed that long when it is decided how much to ask for. */
const AVAILABLE_MS = 1000

/** A wallet that the ledger does not know is not served. */
const UNKNOWN: WalletState = { limited: true, funds: 0n, spent: 0n, leased: 0n }

/** What the ledger told of a wallet, and when. */
export class WalletView {
  readonly #clock: Clock
  #state: WalletState | undefined
  /** When the ledger was asked: what it told cannot be younger. */
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  told(state: WalletState | undefined, askedAt: number): void {
    this.#state = state ?? UNKNOWN
    this.#askedAt = askedAt
  }

  /** undefined where nothing was told yet. */
  get limited(): boolean | undefined {
    return this.#state?.limited
  }

  /** What all leases and charges leave. */
  get available(): bigint {
    if (!this.#state) return 0n
    const { funds, spent, leased } = this.#state
    const available = funds - spent - leased
    return available > 0n ? available : 0n
  }

  /** What there would be with all leases given back. */
  get balance(): bigint {
    return this.#state ? this.#state.funds - this.#state.spent : 0n
  }

  /** Whether it may be relied on that it is not limited. */
  get isBelieved(): boolean {
    return this.#age < BELIEVED_MS
  }

  /** Whether others have hardly had time to change what is available. */
  get isRecent(): boolean {
    return this.#age < AVAILABLE_MS
  }

  /** Whether calls rely on what was told a while ago, and it should be asked for again. */
  isOld(usedAt: number): boolean {
    return this.#age > ASK_AGAIN_MS && usedAt > this.#askedAt
  }

  get #age(): number {
    return this.#clock.now() - this.#askedAt
  }
}
