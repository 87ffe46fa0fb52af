import type { Logger } from '../../core/call/index.ts'
import { StoreAway, StoreGuard } from '../../core/store-guard/index.ts'
import type { Count, Demand, LimitStore, Verdict } from './limit-store.ts'

/**
 * A limit store of the app. What it does wrong costs the call that asked it an error in time, and nothing else: it may throw,
 * reject at any time, never answer, or answer something that is no verdict.
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

  admit(demand: Demand): Verdict | Promise<Verdict> {
    const asked: unknown = this.#store.admit(demand)
    return isPromise(asked) ? this.#inTime(demand, asked) : verdictIn(asked, demand)
  }

  hold(demand: Demand): void {
    this.#quietly(() => this.#store.hold(demand))
  }

  release(demand: Demand): Promise<void> | undefined {
    return this.#quietly(() => this.#store.release(demand))
  }

  ended(sender: string): void {
    this.#quietly(() => this.#store.ended?.(sender))
  }

  /** @throws the store's own error, or {@link StoreAway} if it does not answer in time. */
  async #inTime(demand: Demand, asked: PromiseLike<unknown>): Promise<Verdict> {
    const answered = Promise.resolve(asked)
    let isLate = false
    answered.then(
      () => {
        // Whoever was refused meanwhile has given back what had not been taken yet.
        if (isLate) this.release(demand)
      },
      () => {},
    )
    try {
      // Not an outage: other calls may well be answered.
      return verdictIn(await this.#guard.retry(() => answered), demand)
    } catch (error) {
      isLate = true
      throw error instanceof StoreAway && error.cause !== undefined ? error.cause : error
    }
  }

  /** Runs what no call is refused for. Returns a promise that resolves when it is done, has failed, or takes too long. */
  #quietly(run: () => unknown): Promise<void> | undefined {
    const tell = (error: unknown): void => this.#logger.error({ err: error }, 'rate limits: the store failed')
    try {
      const running = run()
      if (!isPromise(running)) return undefined
      return this.#guard.retry(() => Promise.resolve(running)).then(() => {}, tell)
    } catch (error) {
      tell(error)
      return undefined
    }
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}

/**
 * Returns the verdict, with the refusing limit as the demand has it.
 *
 * @throws TypeError if the answer of a store is no verdict on the demand.
 */
function verdictIn(answer: unknown, { charges, slots }: Demand): Verdict {
  const { refusedBy, waitMs, counts } = (answer ?? {}) as Partial<Verdict>
  const refusing = refusedBy && [...charges, ...slots].find(({ key }) => key === refusedBy.key)
  const isCounted = Array.isArray(counts) && counts.length === charges.length && counts.every(isCount)
  if (refusing === refusedBy || refusing) {
    if (isAmount(waitMs) && isCounted) return { refusedBy: refusing, waitMs, counts }
  }
  throw new TypeError('rateLimit: the answer of the store is no verdict: see LimitStore')
}

function isCount(count: Partial<Count> | null | undefined): boolean {
  return isAmount(count?.used) && isAmount(count?.resetMs)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY
}
