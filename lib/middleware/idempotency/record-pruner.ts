import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { IdempotencyStore } from './idempotency-store.ts'

const PRUNE_MS = 60_000
const PRUNED_AT_ONCE = 500

/** Removes expired records once a minute. */
export class RecordPruner {
  readonly #store: IdempotencyStore
  readonly #guard: StoreGuard
  #prunedAt = 0

  constructor(store: IdempotencyStore, guard: StoreGuard) {
    this.#store = store
    this.#guard = guard
  }

  /**
   * Removes expired records, if a minute has passed.
   *
   * @param forMs how long it may take. What is left after a long outage is for the next times.
   * @throws {StoreAway} when the store does not answer.
   */
  async prune(forMs: number): Promise<void> {
    const now = Date.now()
    if (now - this.#prunedAt < PRUNE_MS) return
    const until = performance.now() + forMs
    let pruned = PRUNED_AT_ONCE
    while (pruned === PRUNED_AT_ONCE && performance.now() < until) {
      pruned = await this.#guard.retry(() => this.#store.prune(now, PRUNED_AT_ONCE))
    }
    if (pruned < PRUNED_AT_ONCE) this.#prunedAt = now
  }
}
