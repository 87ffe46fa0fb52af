import type { Logger } from '../call/index.ts'

/** Options of {@link Outage}. */
export interface OutageOptions {
  /** The name of the store in the log. */
  readonly store: string
  /** The effect on callers while the store is away. Defaults to nothing. */
  readonly effect?: string | undefined
  readonly logger: Logger
  /** Returns the time in milliseconds. Defaults to the monotonic clock: the wall clock may be set during an outage. */
  readonly now?: () => number
}

/**
 * Logs the outages of a store: one line when it goes away and one when it is back.
 *
 * @example
 * const outage = new Outage({ store: 'webhooks', effect: 'events are sent later', logger })
 * await send().then(() => outage.ends(), (error) => outage.begins(error))
 */
export class Outage {
  readonly #options: OutageOptions
  readonly #now: () => number
  #since: number | undefined

  constructor(options: OutageOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Whether the store is away. */
  get isOn(): boolean {
    return this.#since !== undefined
  }

  /** Notes that the store is away. Has no effect while that is known. */
  begins(error: unknown, fields: object = {}): void {
    if (this.isOn) return
    this.#since = this.#now()
    const { store, effect, logger } = this.#options
    logger.error({ err: error, store, ...(effect && { effect }), ...fields }, 'store is away')
  }

  /** Notes that the store is back. Has no effect while it is not away. */
  ends(): void {
    if (this.#since === undefined) return
    const { store, logger } = this.#options
    const forMs = Math.round(this.#now() - this.#since)
    this.#since = undefined
    logger.warn({ store, forMs }, 'store is back')
  }
}
