import type { Logger } from '../../core/call/index.ts'
import type { Count, Demand, LimitStore, Verdict } from '../../core/limit-store/index.ts'
import { StoreAway, StoreGuard } from '../../core/store-guard/index.ts'

/**
 * A limit store of the app. A faulty store fails only the call that used it, within the timeout: it may throw, reject at
 * any time, never answer, or answer something that is no verdict.
 */
export class GuardedLimitStore implements LimitStore {
  readonly #store: LimitStore
  readonly #logger: Logger
  readonly #guard: StoreGuard

  constructor(store: LimitStore, logger: Logger) {
    this.#store = store
    this.#logger = logger
    this.#guard = new StoreGuard({ name: 'limits', logger })
  }

  async admit(demand: Demand): Promise<Verdict> {
    const asked = startedBy(() => this.#store.admit(demand))
    let isLate = false
    asked.then(() => {
      if (isLate) void this.release(demand)
    }, ignore)
    try {
      return verdictIn(await this.#inTime(asked), demand)
    } catch (error) {
      isLate = true
      throw error
    }
  }

  async peek(demand: Demand): Promise<Verdict> {
    if (!this.#store.peek) return { refusedBy: undefined, waitMs: 0, counts: [] }
    return verdictIn(await this.#inTime(startedBy(() => this.#store.peek?.(demand))), demand)
  }

  hold(demand: Demand): void {
    void this.#logged(() => this.#store.hold(demand))
  }

  release(demand: Demand): Promise<void> {
    return this.#logged(() => this.#store.release(demand))
  }

  book(key: string, points: number, windowMs: number): Promise<void> {
    return this.#logged(() => this.#store.book?.(key, points, windowMs))
  }

  /** @throws the store's own error, or {@link StoreAway} if it does not answer in time. */
  async #inTime(asked: Promise<unknown>): Promise<unknown> {
    try {
      // One call without an answer is no outage: others may well be answered.
      return await this.#guard.retry(() => asked)
    } catch (error) {
      throw error instanceof StoreAway && error.cause !== undefined ? error.cause : error
    }
  }

  /** Runs an operation that no call is refused for. Resolves when it is done, has failed, or takes too long. */
  async #logged(run: () => unknown): Promise<void> {
    try {
      await this.#inTime(startedBy(run))
    } catch (err) {
      this.#logger.error({ err }, 'rate limits: the store failed')
    }
  }
}

/** Runs an operation at once, and returns its answer or error as a promise. */
async function startedBy<T>(run: () => T): Promise<Awaited<T>> {
  return await run()
}

/**
 * Returns the verdict, with the refusing limit as the demand has it.
 *
 * @throws TypeError if the answer of a store is no verdict on the demand.
 */
function verdictIn(answer: unknown, { charges, slots }: Demand): Verdict {
  const { refusedBy, waitMs, counts } = (answer ?? {}) as Partial<Verdict>
  const refusing = [...charges, ...slots].find(({ key }) => key === refusedBy?.key)
  const isCounted = Array.isArray(counts) && counts.length === charges.length && counts.every(isCount)
  if ((refusing || !refusedBy) && isAmount(waitMs) && isCounted)
    return { refusedBy: refusing, waitMs, counts }
  throw new TypeError('rateLimit: the answer of the store is no verdict: see LimitStore')
}

function isCount(count: Partial<Count> | null | undefined): boolean {
  return isAmount(count?.used) && isAmount(count?.resetMs)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY
}

function ignore(): void {}
