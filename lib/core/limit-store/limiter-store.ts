import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { Logger } from '../call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  someMilliseconds,
} from '../options/index.ts'
import { StoreGuard } from '../store-guard/index.ts'
import { Batcher } from './batcher.ts'
import {
  type Count,
  type Demand,
  type Limit,
  type LimitStore,
  SLOT_WAIT_MS,
  type Verdict,
  WINDOW_END_MS,
} from './limit-store.ts'
import { MemorySlots, type SlotStore } from './slots.ts'
import { type OwedWait, Waits } from './waits.ts'

/** The points of a limiter that serves all subjects. It is never reached: each subject has a maximum of its own. */
export const NEVER_REACHED = Number.MAX_SAFE_INTEGER

/** Options of {@link LimiterStore}. */
export interface LimiterStoreOptions {
  /** How long the limiter may take before its store counts as away, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /** Receives the beginning and the end of each outage. Defaults to the console. */
  logger?: Logger
  /** Runs when an outage begins and when it ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
  /** Keeps the slots of `concurrency`. Defaults to the memory of this process: the library has none. */
  slots?: SlotStore
  /**
   * Guards the limiter, with `timeoutMs`, `logger` and `onStoreChange` of its own. `none` for a limiter in the memory of this
   * process, which is never away. Defaults to a guard of these options.
   */
  guard?: StoreGuard | 'none'
  /** Returns the error to report for one of a key, such as a `BrokenRecord`. Defaults to the error itself. */
  faultOf?: (error: Error, key: string) => Error
  /**
   * Returns how many milliseconds a record of the limiter lasts, 0 or less if there is none. Each request asks it whether its
   * sender has to wait. Defaults to `get` of the limiter.
   */
  msLeft?: (key: string) => Promise<number>
}

const aGuard = anObjectWith('a StoreGuard', 'run', 'retry')

const RULES: OptionRules<LimiterStoreOptions> = {
  timeoutMs: someMilliseconds,
  logger: aLogger,
  onStoreChange: aFunction(),
  slots: anObjectWith('a SlotStore', 'acquire', 'hold', 'release', 'isFull'),
  guard: { be: 'a StoreGuard, or "none"', accepts: (value) => value === 'none' || aGuard.accepts(value) },
  faultOf: aFunction(),
  msLeft: aFunction(),
}

/** A limiter, and what is asked of it. */
interface OpenLimiter {
  readonly limiter: RateLimiterAbstract
  readonly waits: Waits
  /** A limiter whose own points are used up rejects with its answer. */
  consume(key: string, cost: number): Promise<Consumed>
}

type Consumed = Pick<RateLimiterRes, 'consumedPoints' | 'msBeforeNext'>

/** A charge that a limiter has counted. */
interface Counted extends Count {
  readonly charge: Limit
  /** When the limiter answered, by `performance.now()`. */
  readonly answeredAt: number
  /** False if the limiter refused the key from its own memory and counted nothing. */
  readonly isCounted: boolean
}

interface Refusal extends OwedWait {
  readonly refusedBy: Limit
  /** Whether the sender has to wait because it retried early, and not for the limit's window. */
  readonly isOwed: boolean
}

/**
 * Counts with rate-limiter-flexible, which keeps counters in memory, in Redis, in Postgres or in the primary process of a
 * cluster. A request consumes from all of its limits at the same time. If one is exceeded, all get their points back
 * before the refusal is returned.
 *
 * A request that would fit can be refused in the moment in which another one is being refused; it waits for a second.
 *
 * @param limiter a limiter, whose duration is the `windowMs` of the `rateLimit` over it, or a function that returns one for
 *   a length of windows. Its own points do not matter.
 * @throws TypeError at construction when the limiter blocks or delays: a wait is what `rateLimit` returns to its callers.
 * @example
 * const limiter = new RateLimiterPostgres({ storeClient: pool, points: 1e9, duration: 60 })
 * app.use(rateLimit({ limit: 100, store: new LimiterStore(limiter) }))
 */
export class LimiterStore implements LimitStore {
  readonly keepsTime: boolean = true
  readonly #open: (windowMs: number) => RateLimiterAbstract
  readonly #limiters = new Map<number, OpenLimiter>()
  readonly #guard: StoreGuard | undefined
  readonly #slots: SlotStore
  readonly #faultOf: (error: Error, key: string) => Error
  readonly #msLeft: LimiterStoreOptions['msLeft']
  /** The requests of admissions that got no answer in time. */
  readonly #unanswered = new WeakMap<Demand, readonly Promise<Counted>[]>()

  constructor(
    limiter: RateLimiterAbstract | ((windowMs: number) => RateLimiterAbstract),
    options: LimiterStoreOptions = {},
  ) {
    checkOptions('LimiterStore', options, RULES)
    const { slots = new MemorySlots(), guard, faultOf = (error) => error, msLeft, ...guarded } = options
    this.#open = typeof limiter === 'function' ? limiter : onlyLimiter(limiter)
    this.#slots = slots
    this.#faultOf = faultOf
    this.#msLeft = msLeft
    this.#guard = guard === 'none' ? undefined : (guard ?? new StoreGuard({ name: 'limiter', ...guarded }))
  }

  /** Whether the store is away, as far as this process knows. */
  get away(): boolean {
    return this.#guard?.away ?? false
  }

  /** The number of outages so far, for metrics. */
  get outages(): number {
    return this.#guard?.outages ?? 0
  }

  checkWindow(windowMs: number): void {
    this.#limiterFor(windowMs)
  }

  async admit(demand: Demand): Promise<Verdict> {
    const open = this.#limiterFor(demand.windowMs)
    const asked: Promise<Counted>[] = []
    try {
      const [owed, ...counts] = await this.#run(() => {
        for (const charge of demand.charges) asked.push(this.#consume(open, charge))
        // All are awaited together, so that the failure of one does not leave another one unhandled.
        return Promise.all([owedBy(open, demand), ...asked])
      })
      const refusal = refusalOf(demand, owed, counts)
      if (refusal) return await this.#refuse(open, demand, counts, refusal)
      const full = demand.slots.length > 0 ? await this.#takeSlots(demand) : undefined
      if (!full) return { refusedBy: undefined, waitMs: 0, counts }
      return {
        refusedBy: full,
        waitMs: SLOT_WAIT_MS,
        counts: await this.#giveAllBack(open.limiter, counts),
      }
    } catch (error) {
      this.#unanswered.set(demand, asked)
      throw error
    }
  }

  async peek(demand: Demand): Promise<Verdict> {
    const { charges, slots, windowMs } = demand
    const open = this.#limiterFor(windowMs)
    const [owed, ...found] = await this.#retry(() =>
      Promise.all([owedBy(open, demand), ...charges.map(({ key }) => open.limiter.get(key))]),
    )
    const counts = found.map((count) =>
      count && Number(count.msBeforeNext) > 0 ? countIn(count, windowMs) : { used: 0, resetMs: windowMs },
    )
    const withCosts = counts.map(({ used, resetMs }, i) => ({
      used: used + (charges[i] as Limit).cost,
      resetMs,
    }))
    const refusal = refusalOf(demand, owed, withCosts)
    if (refusal) return { refusedBy: refusal.refusedBy, waitMs: refusal.waitMs, counts }
    const full = slots.find(({ key, max }) => this.#slots.isFull(key, max))
    return { refusedBy: full, waitMs: full ? SLOT_WAIT_MS : 0, counts }
  }

  hold(demand: Demand): void {
    this.#unanswered.delete(demand)
    for (const { key } of demand.slots) this.#slots.hold(key, demand.id)
  }

  release(demand: Demand): Promise<void> | undefined {
    const asked = this.#unanswered.get(demand)
    this.#unanswered.delete(demand)
    const { limiter } = this.#limiterFor(demand.windowMs)
    // Not through the guard, which may take the store for away although it has just answered.
    for (const each of asked ?? []) each.then((late) => giveBack(limiter, late)).catch(ignore)
    const waiting = demand.slots.map(({ key }) => this.#slots.release(key, demand.id))
    return waiting.some((each) => each) ? Promise.all(waiting).then(ignore) : undefined
  }

  /** @throws StoreAway, as a rejection. */
  async book(key: string, points: number, windowMs: number): Promise<void> {
    const { limiter } = this.#limiterFor(windowMs)
    await this.#retry(() => (points > 0 ? limiter.penalty(key, points) : limiter.reward(key, -points)))
  }

  #limiterFor(windowMs: number): OpenLimiter {
    let open = this.#limiters.get(windowMs)
    if (!open) {
      const limiter = this.#open(windowMs)
      open = {
        limiter,
        waits: new Waits(limiter, this.#msLeft),
        // Memory answers at once.
        consume: this.#guard ? consumeTogether(limiter) : (key, cost) => limiter.consume(key, cost),
      }
      this.#limiters.set(windowMs, open)
    }
    return open
  }

  /** @throws an Error if the limiter fails. */
  #consume({ limiter, consume }: OpenLimiter, charge: Limit): Promise<Counted> {
    const { key, cost } = charge
    const { msDuration } = limiter
    return consume(key, cost).then(
      (answer) => countedIn(answer, charge, msDuration),
      (error: unknown) => {
        if (error instanceof Error) throw this.#faultOf(error, key)
        return countedIn(error as Consumed, charge, msDuration)
      },
    )
  }

  async #refuse(
    { limiter, waits }: OpenLimiter,
    demand: Demand,
    counted: readonly Counted[],
    refusal: Refusal,
  ): Promise<Verdict> {
    const { refusedBy, place, isOwed } = refusal
    const counts = await this.#giveAllBack(limiter, counted)
    const { used } = counts[place] as Count
    // The room that was missing had been taken by requests that were refused as well.
    if (!isOwed && used + refusedBy.cost <= refusedBy.max) return { refusedBy, waitMs: SLOT_WAIT_MS, counts }
    let { waitMs } = refusal
    try {
      waitMs = await this.#retry(() => waits.refused(demand.sender, refusal, isOwed))
    } catch {
      // The request stays refused. The guard logs the outage.
    }
    return { refusedBy, waitMs, counts }
  }

  /** Returns the counts without these charges. */
  async #giveAllBack(limiter: RateLimiterAbstract, counted: readonly Counted[]): Promise<Count[]> {
    try {
      return await this.#retry(() => Promise.all(counted.map((each) => giveBack(limiter, each))))
    } catch {
      // The points are gone until their window ends. The guard logs the outage.
      return counted.map(without)
    }
  }

  /** Takes all slots or none. Returns the limit that has none free. */
  async #takeSlots({ id, slots }: Demand): Promise<Limit | undefined> {
    const taken = await Promise.all(slots.map(({ key, max }) => this.#slots.acquire(key, id, max)))
    const full = slots.find((_, i) => !taken[i])
    if (full) await Promise.all(slots.map(({ key }, i) => taken[i] && this.#slots.release(key, id)))
    return full
  }

  #run<T>(operation: () => Promise<T>): Promise<T> {
    return this.#guard ? this.#guard.run(operation) : operation()
  }

  #retry<T>(operation: () => Promise<T>): Promise<T> {
    return this.#guard ? this.#guard.retry(operation) : operation()
  }
}

/** Returns the only limiter of a store, for windows of its own length. */
function onlyLimiter(limiter: RateLimiterAbstract): (windowMs: number) => RateLimiterAbstract {
  if (typeof limiter?.consume !== 'function' || !Number.isFinite(limiter.points))
    throw new TypeError(
      'LimiterStore: give it a limiter of rate-limiter-flexible with "points" and "duration", such as new RateLimiterMemory({ points: 1e9, duration: 60 })',
    )
  if (limiter.blockDuration > 0 || limiter.execEvenly)
    throw new TypeError('LimiterStore: leave "blockDuration" and "execEvenly" out of the limiter')
  return (windowMs) => {
    if (limiter.msDuration === windowMs) return limiter
    throw new TypeError(
      `LimiterStore: the limiter counts in windows of ${limiter.msDuration} ms, so the "rateLimit" over it must have a "windowMs" of ${limiter.msDuration}, not ${windowMs}`,
    )
  }
}

/** Returns a function that consumes from a limiter, for requests about a busy key together. */
function consumeTogether(limiter: RateLimiterAbstract): OpenLimiter['consume'] {
  const together = new Batcher<number, Consumed>((key, costs) => consumeAll(limiter, key, costs))
  return (key, cost) => together.ask(key, cost)
}

/**
 * Consumes the costs of several requests at once. Returns what each of them would be answered if they came one after another.
 *
 * @throws an Error if the limiter fails.
 */
async function consumeAll(
  limiter: RateLimiterAbstract,
  key: string,
  costs: readonly number[],
): Promise<Consumed[]> {
  const total = costs.reduce((sum, cost) => sum + cost, 0)
  const { consumedPoints, msBeforeNext } = await limiter.consume(key, total).catch((error: unknown) => {
    if (error instanceof Error) throw error
    return error as Consumed
  })
  let used = Number(consumedPoints) - total
  return costs.map((cost) => {
    used += cost
    return { consumedPoints: used, msBeforeNext }
  })
}

function owedBy(
  { waits }: OpenLimiter,
  { sender, charges }: Demand,
): Promise<OwedWait | undefined> | undefined {
  return charges.length > 0 ? waits.owedBy(sender) : undefined
}

/** Returns the refusal with the longest wait; after a shorter wait, that limit would still refuse. */
function refusalOf(
  { charges }: Demand,
  owed: OwedWait | undefined,
  counts: readonly Count[],
): Refusal | undefined {
  let refusal: Refusal | undefined
  charges.forEach((refusedBy, place) => {
    const { used, resetMs: waitMs } = counts[place] as Count
    if (used > refusedBy.max && waitMs > (refusal?.waitMs ?? 0))
      refusal = { refusedBy, waitMs, place, isOwed: false }
  })
  if (!owed || owed.waitMs <= (refusal?.waitMs ?? 0)) return refusal
  const place = owed.place < charges.length ? owed.place : 0
  return { refusedBy: charges[place] as Limit, waitMs: owed.waitMs, place, isOwed: true }
}

/** Reads numbers, which are texts with some clients. */
function countIn({ consumedPoints, msBeforeNext }: Consumed, windowMs: number): Count {
  const leftMs = Number(msBeforeNext)
  return { used: Number(consumedPoints), resetMs: leftMs > 0 ? leftMs : windowMs }
}

/** Returns what a limiter answered to a charge. */
function countedIn(answer: Consumed, charge: Limit, windowMs: number): Counted {
  const { cost, max } = charge
  const { used, resetMs } = countIn(answer, windowMs)
  const isCounted = used >= cost
  return { charge, used: isCounted ? used : max + cost, resetMs, answeredAt: performance.now(), isCounted }
}

function without({ charge, used, resetMs }: Counted): Count {
  return { used: used - charge.cost, resetMs }
}

/** Gives the points of a charge back, and returns its count without them. */
async function giveBack(limiter: RateLimiterAbstract, counted: Counted): Promise<Count> {
  const { charge, resetMs, answeredAt, isCounted } = counted
  const windowEnd = answeredAt + resetMs
  if (!isCounted || charge.cost === 0 || windowEnd - performance.now() <= WINDOW_END_MS)
    return without(counted)
  const count = countIn(await limiter.reward(charge.key, charge.cost), limiter.msDuration)
  // The points came too late, in the next window, which would admit that many too many.
  if (performance.now() + count.resetMs > windowEnd + limiter.msDuration / 2) {
    await limiter.penalty(charge.key, charge.cost)
    return without(counted)
  }
  return count
}

function ignore(): void {}
