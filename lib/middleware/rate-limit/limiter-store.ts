import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { Logger } from '../../core/call/index.ts'
import { aLogger, checkOptions, someMilliseconds } from '../../core/options/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import type { Demand, Limit, LimitStore, Verdict } from './limit-store.ts'

/** Points are not given back in the last milliseconds of their window: they might arrive in the next one. */
const WINDOW_END_MS = 300

/** Options of {@link LimiterStore}. */
export interface LimiterStoreOptions {
  /** How long the limiter may take before its store counts as away, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /** Receives the beginning and the end of each outage. Defaults to the console. */
  logger?: Logger
}

/**
 * One limit of a `rateLimit`, counted by a limiter of rate-limiter-flexible in whatever that keeps its counters in:
 * memory, Redis, Postgres, MySQL, MongoDB, the primary process of a cluster. Uses the limiter's public interface only.
 *
 * The limiter counts a refused request first. This store gives its points back at once, within the same window; until then
 * a smaller request may be refused that would have fit. Of one limit it can count either requests or tokens; it has no
 * slots, and it prolongs no wait.
 *
 * @throws TypeError at construction when the limiter blocks or delays: a wait is what `rateLimit` tells its callers.
 * @example
 * const limiter = new RateLimiterPostgres({ storeClient: pool, points: 100, duration: 60 })
 * const level = { name: 'ip', by: (req) => req.ip, rpm: limiter.points }
 * app.use(rateLimit({ levels: [level], windowMs: limiter.msDuration, store: new LimiterStore(limiter) }))
 */
export class LimiterStore implements LimitStore {
  readonly keepsTime = true
  readonly #limiter: RateLimiterAbstract
  readonly #guard: StoreGuard
  /** Demands that were refused although the limiter may have counted them. */
  readonly #unused = new WeakSet<Demand>()

  constructor(limiter: RateLimiterAbstract, options: LimiterStoreOptions = {}) {
    if (typeof limiter?.consume !== 'function' || !Number.isFinite(limiter.points))
      throw new TypeError(
        'LimiterStore: give it a limiter of rate-limiter-flexible with "points" and "duration", such as new RateLimiterMemory({ points: 60, duration: 60 })',
      )
    if (limiter.blockDuration > 0 || limiter.execEvenly)
      throw new TypeError('LimiterStore: leave "blockDuration" and "execEvenly" out of the limiter')
    checkOptions<LimiterStoreOptions>('LimiterStore', options, {
      timeoutMs: someMilliseconds,
      logger: aLogger,
    })
    this.#limiter = limiter
    this.#guard = new StoreGuard({ name: 'limiter', ...options })
  }

  /** @throws TypeError when the demand is not one limit of the limiter's own points and duration. */
  async admit(demand: Demand): Promise<Verdict> {
    const charge = this.#onlyChargeOf(demand)
    let asked: Promise<Verdict> | undefined
    try {
      return await this.#guard.run(() => {
        asked = this.#consume(charge)
        return asked
      })
    } catch (error) {
      asked?.then((late) => {
        if (!late.refusedBy && this.#unused.has(demand)) this.#giveBack(charge, late.counts[0]?.resetMs ?? 0)
      }, ignore)
      throw error
    }
  }

  /** Does nothing: the limiter has no slots. */
  hold(): void {}

  release(demand: Demand): void {
    this.#unused.add(demand)
  }

  async #consume(charge: Limit): Promise<Verdict> {
    const { key, cost, max } = charge
    let refused: RateLimiterRes
    try {
      const { consumedPoints: used, msBeforeNext: resetMs } = await this.#limiter.consume(key, cost)
      return { refusedBy: undefined, waitMs: 0, counts: [{ used, resetMs }] }
    } catch (error) {
      // A refusal is an answer of the limiter, a failure an Error.
      if (error instanceof Error) throw error
      refused = error as RateLimiterRes
    }
    const { consumedPoints, msBeforeNext: waitMs } = refused
    // A limiter that refuses without asking its store has counted nothing.
    const counted = consumedPoints > max
    if (counted) this.#giveBack(charge, waitMs)
    const used = counted ? consumedPoints - cost : max
    return { refusedBy: charge, waitMs, counts: [{ used, resetMs: waitMs }] }
  }

  /** Gives points back within their window. Never rejects: points that cannot be given back expire with it. */
  #giveBack({ key, cost }: Limit, windowLeftMs: number): void {
    if (windowLeftMs <= WINDOW_END_MS) return
    const windowEnd = performance.now() + windowLeftMs
    const giveBack = async () => {
      const { msBeforeNext } = await this.#limiter.reward(key, cost)
      // They arrived too late, in the next window, which would admit that many too many.
      if (performance.now() + msBeforeNext > windowEnd + this.#limiter.msDuration / 2)
        await this.#limiter.penalty(key, cost)
    }
    giveBack().catch(ignore)
  }

  #onlyChargeOf({ charges, slots, windowMs }: Demand): Limit {
    const { points, msDuration } = this.#limiter
    const [charge] = charges
    if (charges.length + slots.length === 1 && charge?.max === points && windowMs === msDuration)
      return charge
    throw new TypeError(
      `LimiterStore: the limiter counts ${points} in ${msDuration} ms, so the "rateLimit" over it must have one level with one limit, "rpm" or "tpm", of ${points}, and a "windowMs" of ${msDuration}`,
    )
  }
}

function ignore(): void {}
