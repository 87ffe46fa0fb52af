import type { Logger } from '../../core/call/index.ts'
import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { HeldClaim } from './held-claim.ts'

/** What {@link UnansweredClaims} work with. */
export interface UnansweredClaimsOptions {
  readonly guard: StoreGuard
  readonly logger: Logger
  /** Asks the store again; throws while it does not answer. */
  readonly ask: (held: HeldClaim) => Promise<void>
}

/** Claims whose completion or release was asked for and not answered: asked again until the store answers. */
export class UnansweredClaims {
  readonly #options: UnansweredClaimsOptions
  readonly #claims = new Set<HeldClaim>()
  readonly #told = new WeakSet<HeldClaim>()

  constructor(options: UnansweredClaimsOptions) {
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

  /** Each by itself, and what fails comes last the next time: one that can never be settled hinders no other. */
  async askAll(forMs: number): Promise<void> {
    const until = performance.now() + forMs
    for (const held of [...this.#claims]) {
      try {
        await this.ask(held)
      } catch (error) {
        this.#claims.delete(held)
        this.#claims.add(held)
        if (this.#options.guard.away) return
        this.#tellOnce(held, error)
      }
      if (performance.now() > until) return
    }
  }

  #tellOnce(held: HeldClaim, error: unknown): void {
    if (this.#told.has(held)) return
    this.#told.add(held)
    this.#options.logger.error(
      { err: error, requestId: held.owner },
      'idempotency: a claim cannot be settled yet',
    )
  }
}
