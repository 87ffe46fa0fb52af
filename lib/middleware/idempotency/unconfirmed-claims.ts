import type { Logger } from '../../core/call/index.ts'
import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { HeldClaim } from './held-claim.ts'

/** Options of {@link UnconfirmedClaims}. */
export interface UnconfirmedClaimsOptions {
  readonly guard: StoreGuard
  readonly logger: Logger
  /** Asks the store again. Throws while it does not answer. */
  readonly ask: (held: HeldClaim) => Promise<void>
}

/** Claims whose completion or release the store has not confirmed. They are repeated until it does. */
export class UnconfirmedClaims {
  readonly #options: UnconfirmedClaimsOptions
  readonly #claims = new Set<HeldClaim>()
  readonly #logged = new WeakSet<HeldClaim>()

  constructor(options: UnconfirmedClaimsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#claims.size
  }

  [Symbol.iterator](): Iterator<HeldClaim> {
    return this.#claims.values()
  }

  add(held: HeldClaim): void {
    this.#claims.add(held)
  }

  /** @throws {StoreAway} when the store still does not answer. */
  async ask(held: HeldClaim): Promise<void> {
    await this.#options.ask(held)
    this.#claims.delete(held)
  }

  /** Repeats each claim's operation by itself. A failed one goes last next time, so that it delays no other. */
  async askAll(forMs: number): Promise<void> {
    const until = performance.now() + forMs
    for (const held of [...this.#claims]) {
      try {
        await this.ask(held)
      } catch (error) {
        this.#claims.delete(held)
        this.#claims.add(held)
        if (this.#options.guard.away) return
        this.#logOnce(held, error)
      }
      if (performance.now() > until) return
    }
  }

  #logOnce(held: HeldClaim, error: unknown): void {
    if (this.#logged.has(held)) return
    this.#logged.add(held)
    this.#options.logger.error(
      { err: error, requestId: held.owner },
      'idempotency: a claim cannot be settled yet',
    )
  }
}
