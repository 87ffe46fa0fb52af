import { GatewayError } from '../../core/errors/index.ts'
import { timeLimit } from '../../core/timing/index.ts'
import type { StoreReading } from './gateway-states.ts'
import { observedStore } from './observed-store.ts'

/** A store counts as away after this long without an answer; the key directory uses the same limit for calls. */
const AWAY_AFTER_MS = 2000

/**
 * Tracks the outages of a store for metrics, as reported by a guard or seen in the store's own answers.
 *
 * @example
 * const claims = new StoreWatch()
 * const keys = new StoreWatch()
 * app.use(telemetry({ states: { stores: { idempotency: claims, keys } } }))
 * app.use(authenticate({ keys: keys.watching(directory) }))
 * app.use(idempotency({ onStoreChange: claims.onChange }))
 */
export class StoreWatch implements StoreReading {
  #away = false
  #outages = 0
  #answeredAt = Number.NEGATIVE_INFINITY

  /** The callback to report that the store went away or came back. */
  readonly onChange = (away: boolean): void => {
    if (away && !this.#away) this.#outages++
    this.#away = away
  }

  get away(): boolean {
    return this.#away
  }

  get outages(): number {
    return this.#outages
  }

  /**
   * Wraps a store that has no guard. The store counts as away once an operation fails, or gets no answer within two
   * seconds in which no other does. It is back at the next answer. A `GatewayError` is an answer.
   */
  watching<S extends object>(store: S): S {
    return observedStore(store, (_operation, answer) => {
      if (answer instanceof Promise) this.#await(answer)
      else this.#answered()
    })
  }

  #answered(): void {
    this.#answeredAt = performance.now()
    this.onChange(false)
  }

  #await(answer: Promise<unknown>): void {
    const askedAt = performance.now()
    const late = (): void => {
      if (this.#answeredAt < askedAt) this.onChange(true)
    }
    const settled = timeLimit(AWAY_AFTER_MS, late)
    answer.then(
      () => {
        settled()
        this.#answered()
      },
      (error: unknown) => {
        settled()
        if (error instanceof GatewayError) this.#answered()
        else this.onChange(true)
      },
    )
  }
}
