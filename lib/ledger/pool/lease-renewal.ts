import type { Ledger } from '../ledger.ts'
import { type Clock, momentOf } from './clock.ts'
import type { HeldLease } from './held-lease.ts'
import type { LedgerHealth } from './ledger-health.ts'
import type { WalletLease } from './wallet-lease.ts'

/** The parts that {@link LeaseRenewal} works with. */
export interface LeaseRenewalDeps {
  readonly ledger: Pick<Ledger, 'renew' | 'leases'>
  readonly clock: Clock
  readonly health: LedgerHealth
  readonly wallets: () => Iterable<WalletLease>
}

const RENEW_MS = 7000
const RETRY_MS = 1000
/** Leases renewed by one operation, so that it stays within its time limit. */
const AT_ONCE = 500

/** Renews this process's leases, with one timer for all of them. */
export class LeaseRenewal {
  readonly #deps: LeaseRenewalDeps
  #callOff: (() => void) | undefined
  #closed = false

  constructor(deps: LeaseRenewalDeps) {
    this.#deps = deps
    this.#renewIn(RENEW_MS)
  }

  close(): void {
    this.#closed = true
    this.#callOff?.()
  }

  #renewIn(ms: number): void {
    if (!this.#closed) this.#callOff = this.#deps.clock.after(ms, () => void this.#round())
  }

  async #round(): Promise<void> {
    try {
      const held = [...this.#held()]
      for (let at = 0; at < held.length; at += AT_ONCE) await this.#renew(held.slice(at, at + AT_ONCE))
      this.#renewIn(RENEW_MS)
    } catch (error) {
      // A lease that is not renewed in time is not used.
      this.#deps.health.failed(error)
      this.#renewIn(RETRY_MS)
    }
  }

  *#held(): Iterable<Renewed> {
    for (const wallet of this.#deps.wallets()) {
      const { lease, isAsking } = wallet
      if (lease) yield { wallet, lease, isAsking }
    }
  }

  async #renew(held: readonly Renewed[]): Promise<void> {
    const { ledger, clock, health } = this.#deps
    const asked = momentOf(clock)
    const ids = held.map(({ lease }) => lease.id)
    const kept = await ledger.renew(ids, asked.wall)
    health.answered()
    const isMissing = held.some(({ lease }) => !kept.has(lease.id))
    // A lease that another transaction has locked is not renewed now, and not gone.
    const open = isMissing ? new Set((await ledger.leases()).map(({ id }) => id)) : undefined
    for (const { wallet, lease, isAsking } of held) {
      if (kept.has(lease.id)) lease.confirm(asked)
      // A lease that was being opened or closed may be missing: the answer to that change decides.
      else if (!open?.has(lease.id) && wallet.lease === lease && !isAsking && !wallet.isAsking)
        wallet.drop(lease)
    }
  }
}

/** A lease in a renewal, and whether a change of it was running when the renewal was asked for. */
interface Renewed {
  readonly wallet: WalletLease
  readonly lease: HeldLease
  readonly isAsking: boolean
}
