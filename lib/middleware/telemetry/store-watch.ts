import { GatewayError } from '../../core/errors/index.ts'
import type { StoreReading } from './gateway-states.ts'
import { notedStore } from './noted-store.ts'

/** After this long without any answer a store counts as away, as the key directory does for calls. */
const LATE_MS = 2000

/**
 * Notes a store's outages, for metrics: those that a guard tells of, or those that its own answers tell of.
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

  /** To be told when the store goes away and when it is back. */
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
   * The same store, watched: it is away from an operation on that fails, or is not answered in two seconds in which no other
   * is, until one is answered. A `GatewayError` is an answer. For a store that no guard of the toolkit tells of.
   */
  watching<S extends object>(store: S): S {
    return notedStore(store, (_operation, answer) => {
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
    // Where this process itself was held up, the answer may have come and only be still to be read.
    const timer = setTimeout(() => setImmediate(() => pending && late()), LATE_MS).unref()
    let pending = true
    const settled = (): void => {
      pending = false
      clearTimeout(timer)
    }
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
