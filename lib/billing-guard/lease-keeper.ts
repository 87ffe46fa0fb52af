import type { Logger } from '../call/index.ts'
import { type Clock, momentOf } from './clock.ts'
import type { HeldLease } from './held-lease.ts'
import type { Ledger } from './ledger.ts'
import type { WalletLease } from './wallet-lease.ts'

/** What a {@link LeaseKeeper} works with. */
export interface LeaseKeeperOptions {
  readonly ledger: Pick<Ledger, 'renew'>
  readonly clock: Clock
  readonly logger: Logger
  /** The wallets that this process has leases on. */
  readonly wallets: () => Iterable<WalletLease>
}

const RENEW_MS = 7000
const RETRY_MS = 1000
/** Leases renewed by one operation, so that it stays far within its bound. */
const AT_ONCE = 500

/** Keeps this process's leases alive, with one timer for all of them. */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  #callOff: (() => void) | undefined
  #failed = false
  #closed = false

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#renewIn(RENEW_MS)
  }

  close(): void {
    this.#closed = true
    this.#callOff?.()
  }

  #renewIn(ms: number): void {
    if (!this.#closed) this.#callOff = this.#options.clock.after(ms, () => void this.#round())
  }

  async #round(): Promise<void> {
    try {
      const held = [...this.#held()]
      for (let at = 0; at < held.length; at += AT_ONCE) await this.#renew(held.slice(at, at + AT_ONCE))
      this.#failed = false
      this.#renewIn(RENEW_MS)
    } catch (error) {
      // Leases that are not renewed in time are not used; that they are not is told once per outage.
      if (!this.#failed) this.#options.logger.warn({ err: error }, 'leases could not be renewed yet')
      this.#failed = true
      this.#renewIn(RETRY_MS)
    }
  }

  *#held(): Iterable<[WalletLease, HeldLease]> {
    for (const wallet of this.#options.wallets()) {
      const { lease } = wallet
      if (lease) yield [wallet, lease]
    }
  }

  async #renew(held: readonly (readonly [WalletLease, HeldLease])[]): Promise<void> {
    const { ledger, clock } = this.#options
    const asked = momentOf(clock)
    const ids = held.map(([, { id }]) => id)
    const kept = await ledger.renew(ids, asked.wall)
    for (const [wallet, lease] of held) {
      if (kept.has(lease.id)) lease.confirm(asked)
      // What was given back meanwhile is rightly not there.
      else if (wallet.lease === lease) wallet.drop(lease)
    }
  }
}
