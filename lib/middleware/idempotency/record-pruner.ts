import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { IdempotencyStore } from './idempotency-store.ts'

const INTERVAL_MS = 60_000
/** How long ago a record expired by then: the clock of the process that has it may be behind. */
const SPARE_MS = 3_600_000
const BATCH_SIZE = 500

/** Removes records that expired an hour ago, once a minute. */
export class RecordPruner {
  readonly #store: IdempotencyStore
  readonly #guard: StoreGuard
  #prunedAt = Number.NEGATIVE_INFINITY

  constructor(store: IdempotencyStore, guard: StoreGuard) {
    this.#store = store
    this.#guard = guard
  }

  /**
   * Removes such records, if a minute has passed.
   *
   * @param forMs how long it may take. After a long outage the rest is removed by later runs.
   * @throws {StoreAway} when the store does not answer.
   */
  async prune(forMs: number): Promise<void> {
    const startedAt = performance.now()
    if (startedAt - this.#prunedAt < INTERVAL_MS) return
    const until = startedAt + forMs
    let pruned = BATCH_SIZE
    while (pruned === BATCH_SIZE && performance.now() < until) {
      pruned = await this.#guard.retry(() => this.#store.prune(Date.now() - SPARE_MS, BATCH_SIZE))
    }
    if (pruned < BATCH_SIZE) this.#prunedAt = startedAt
  }
}
