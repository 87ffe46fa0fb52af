import type { StoreGuard } from '../../core/store-guard/index.ts'
import { type HeldClaim, momentNow } from './held-claim.ts'
import type { IdempotencyStore } from './idempotency-store.ts'

export interface HeldClaimsOptions {
  readonly store: IdempotencyStore
  readonly guard: StoreGuard
  readonly leaseMs: number
  /** Told of each claim that another call has by now. */
  readonly onLost: (held: HeldClaim) => void
}

/** The largest number of claims renewed by one operation, to stay far within its time limit. */
const RENEW_BATCH_SIZE = 500

/** The claims of running calls, whose leases are renewed together. */
export class HeldClaims extends Set<HeldClaim> {
  readonly #options: HeldClaimsOptions
  /** Undone claims that the last renewal has found: what was read of their records before may still be on its way. */
  readonly #undone = new WeakSet<HeldClaim>()

  constructor(options: HeldClaimsOptions) {
    super()
    this.#options = options
  }

  /** @throws {StoreAway} when the store does not answer, or its error about a claim. All others are renewed then. */
  async renew(): Promise<void> {
    const claims = [...this]
    const failures: unknown[] = []
    for (let at = 0; at < claims.length; at += RENEW_BATCH_SIZE)
      await this.#renewEach(claims.slice(at, at + RENEW_BATCH_SIZE)).catch((error: unknown) =>
        failures.push(error),
      )
    if (failures.length > 0) throw failures[0]
  }

  /** Renews claims together and, if that fails, in halves: one that cannot be renewed costs no other its lease. */
  async #renewEach(claims: readonly HeldClaim[]): Promise<void> {
    try {
      await this.#renewTogether(claims)
    } catch (error) {
      if (claims.length === 1 || this.#options.guard.away) throw error
      const half = Math.ceil(claims.length / 2)
      const renewed = await Promise.allSettled([
        this.#renewEach(claims.slice(0, half)),
        this.#renewEach(claims.slice(half)),
      ])
      for (const each of renewed) if (each.status === 'rejected') throw each.reason
    }
  }

  async #renewTogether(claims: readonly HeldClaim[]): Promise<void> {
    const { store, guard, leaseMs, onLost } = this.#options
    const askedAt = momentNow()
    const answers = await guard.run(() => store.renew(claims, askedAt.wall + leaseMs))
    for (const [i, claim] of claims.entries()) {
      // The store does not renew ended claims, or completed ones whose ledger has not answered yet.
      if (!this.has(claim) || answers[i] === undefined) continue
      const over = claim.state !== 'running' && claim.state !== 'settling'
      if (answers[i] && !over) claim.confirm(askedAt)
      else if (claim.state === 'released' && !this.#undone.delete(claim)) this.#undone.add(claim)
      else if (claim.state !== 'settling') {
        this.delete(claim)
        if (!over) onLost(claim)
      }
    }
  }
}
