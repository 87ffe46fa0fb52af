import { consoleLogger, type Logger } from '../call/index.ts'

/** The store did not answer, or not in time. What was asked may have happened all the same. */
export class StoreAway extends Error {
  override readonly name = 'StoreAway'
}

/** Options of {@link StoreGuard}. */
export interface StoreGuardOptions {
  /** What the store is called in the log. */
  name: string
  /** Is told when an outage begins and when it ends. Defaults to the console. */
  logger?: Logger
  /** An operation that takes longer than this counts as away, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /** While the store is away, one operation in this time tries whether it is back, in milliseconds. Defaults to 500. */
  probeMs?: number
  /** Called when an outage begins and ends, for metrics. */
  onChange?: (away: boolean) => void
}

/**
 * Keeps a store that is away from holding up calls: no operation waits longer than its bound, and during an outage only
 * one at a time is tried at all. Logs one line when an outage begins and one when it ends.
 *
 * @example
 * const guard = new StoreGuard({ name: 'redis' })
 * await guard.run(() => redis.ping()) // throws StoreAway within 250 ms
 */
export class StoreGuard {
  readonly #name: string
  readonly #logger: Logger
  readonly #timeoutMs: number
  readonly #probeMs: number
  readonly #onChange: (away: boolean) => void
  #awaySince: number | undefined
  #nextProbe = 0
  #outages = 0

  constructor(options: StoreGuardOptions) {
    this.#name = options.name
    this.#logger = options.logger ?? consoleLogger
    this.#timeoutMs = options.timeoutMs ?? 250
    this.#probeMs = options.probeMs ?? 500
    this.#onChange = options.onChange ?? (() => {})
  }

  /** Whether the store is away as far as is known. */
  get away(): boolean {
    return this.#awaySince !== undefined
  }

  /** Outages so far, for metrics. */
  get outages(): number {
    return this.#outages
  }

  /**
   * Runs an operation under the bound.
   *
   * @throws {StoreAway} when it failed or did not answer in time, or when the store is away and it is not this
   *   operation's turn to try.
   */
  async run<T>(operation: () => Promise<T>): Promise<T> {
    const now = performance.now()
    if (this.away) {
      if (now < this.#nextProbe) throw new StoreAway(`${this.#name} is away`)
      this.#nextProbe = now + this.#probeMs
    }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const giveUp = () => reject(new StoreAway(`${this.#name} did not answer in ${this.#timeoutMs} ms`))
      // Where it was this process that was held up, the answer has come and is only to be read: not late.
      timer = setTimeout(() => setImmediate(giveUp), this.#timeoutMs)
    })
    try {
      const answer = await Promise.race([operation(), late])
      this.#back()
      return answer
    } catch (error) {
      this.#gone(error)
      throw error instanceof StoreAway ? error : new StoreAway(`${this.#name} failed`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  #gone(error: unknown): void {
    if (this.#awaySince !== undefined) return
    this.#awaySince = Date.now()
    this.#nextProbe = performance.now() + this.#probeMs
    this.#outages++
    this.#logger.error({ err: error, store: this.#name }, 'store is away')
    this.#tell(true)
  }

  #back(): void {
    if (this.#awaySince === undefined) return
    const forMs = Date.now() - this.#awaySince
    this.#awaySince = undefined
    this.#logger.warn({ store: this.#name, forMs }, 'store is back')
    this.#tell(false)
  }

  /** A listener that fails is not the store's failure. */
  #tell(away: boolean): void {
    try {
      this.#onChange(away)
    } catch (error) {
      this.#logger.error({ err: error, store: this.#name }, 'a listener to store outages failed')
    }
  }
}
