import type { StoreReading } from './gateway-states.ts'

/**
 * Notes a store's outages, for metrics.
 *
 * @example
 * const claims = new StoreWatch()
 * app.use(telemetry({ states: { stores: { idempotency: claims } } }))
 * app.use(idempotency({ onStoreChange: claims.onChange }))
 */
export class StoreWatch implements StoreReading {
  #away = false
  #outages = 0

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
}
