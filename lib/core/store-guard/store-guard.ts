import { consoleLogger, type Logger } from '../call/index.ts'

/** The store did not answer, or not in time. What was asked may have happened all the same. */
export class StoreAway extends Error {
  override readonly name = 'StoreAway'
}

/**
 * The number of slices of the bound. One timer counts them for all running operations. While the event loop is blocked no
 * slice passes, so that the delay of this process does not count as the store's.
 */
const SLICES = 10

/** Ends an operation that has no answer yet. */
type GiveUp = (error: unknown) => void

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
  /** When an operation was last answered in time. */
  #answeredAt = Number.NEGATIVE_INFINITY
  #outages = 0
  /** How to end each running operation, and how many slices of the bound have passed for it. */
  readonly #running = new Map<GiveUp, number>()
  #timer: NodeJS.Timeout | undefined

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
  run<T>(operation: () => Promise<T>): Promise<T> {
    if (!this.mayAsk()) return Promise.reject(new StoreAway(`${this.#name} is away`))
    return this.#ask(operation, true)
  }

  /**
   * {@link run} for what failed before and is asked again while nobody waits for it: it may end an outage, and it begins
   * none. Where one thing cannot be done, ever, the store is not away for all others.
   *
   * @throws {StoreAway} as {@link run} does.
   */
  retry<T>(operation: () => Promise<T>): Promise<T> {
    if (!this.mayAsk()) return Promise.reject(new StoreAway(`${this.#name} is away`))
    return this.#ask(operation, false)
  }

  /**
   * {@link run} for what is worth the wait: it is asked whether the store is away or not.
   *
   * @throws {StoreAway} when it failed or did not answer in time.
   */
  insist<T>(operation: () => Promise<T>): Promise<T> {
    return this.#ask(operation, true)
  }

  /**
   * Whether an operation may be asked now, which {@link run} finds out by itself; for operations that are gathered first
   * and asked together by {@link insist}. While the store is away it takes the turn to try, so ask what it lets through.
   */
  mayAsk(): boolean {
    if (this.#awaySince === undefined) return true
    const now = performance.now()
    if (now < this.#nextProbe) return false
    this.#nextProbe = now + this.#probeMs
    return true
  }

  #ask<T>(operation: () => Promise<T>, beginsOutage: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const askedAt = performance.now()
      const fail: GiveUp = (error) => {
        if (!this.#running.delete(fail)) return
        // One that is late while others are answered is late, and the store is there.
        const answers = error instanceof StoreAway && this.#answeredAt >= askedAt
        if (beginsOutage && !answers) this.#gone(error)
        reject(error instanceof StoreAway ? error : new StoreAway(`${this.#name} failed`, { cause: error }))
      }
      const succeed = (answer: T): void => {
        if (!this.#running.delete(fail)) return
        this.#answeredAt = performance.now()
        this.#back()
        resolve(answer)
      }
      this.#running.set(fail, 0)
      this.#timer ??= setTimeout(this.#passSlice, this.#timeoutMs / SLICES)
      try {
        operation().then(succeed, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Notes that one slice of the bound has passed for every running operation. Runs while there are any. */
  readonly #passSlice = (): void => {
    this.#timer = undefined
    for (const [giveUp, slices] of this.#running) {
      // The slice in which an operation began was shorter than the others.
      if (slices < SLICES) this.#running.set(giveUp, slices + 1)
      // The answer may have come and only be still to be read.
      else setImmediate(giveUp, new StoreAway(`${this.#name} did not answer in ${this.#timeoutMs} ms`))
    }
    if (this.#running.size > 0) this.#timer = setTimeout(this.#passSlice, this.#timeoutMs / SLICES)
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
