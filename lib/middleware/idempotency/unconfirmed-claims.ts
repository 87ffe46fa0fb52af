import type { Logger } from '../../core/call/index.ts'
import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { HeldClaim } from './held-claim.ts'

export interface UnconfirmedClaimsOptions {
  readonly guard: StoreGuard
  readonly logger: Logger
  /** Asks the store again. Throws while it does not answer. */
  readonly ask: (held: HeldClaim) => Promise<void>
}

/** Claims whose completion or release the store has not confirmed. They are repeated until it does. */
export class UnconfirmedClaims extends Set<HeldClaim> {
  readonly #options: UnconfirmedClaimsOptions
  readonly #logged = new WeakSet<HeldClaim>()

  constructor(options: UnconfirmedClaimsOptions) {
    super()
    this.#options = options
  }

  /** @throws {StoreAway} when the store still does not answer. */
  async ask(held: HeldClaim): Promise<void> {
    await this.#options.ask(held)
    this.delete(held)
  }

  /** Repeats each claim's operation by itself. A failed one goes last next time, so that it delays no other. */
  async askAll(forMs: number): Promise<void> {
    const until = performance.now() + forMs
    for (const held of [...this]) {
      try {
        await this.ask(held)
      } catch (error) {
        this.delete(held)
        this.add(held)
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
