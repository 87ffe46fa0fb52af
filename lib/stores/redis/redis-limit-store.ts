import { type Logger, quietLogger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  aWholeNumber,
  checkOptions,
  type OptionRules,
  someMilliseconds,
} from '../../core/options/index.ts'
import { StoreAway, StoreGuard } from '../../core/store-guard/index.ts'
import type { Count, Demand, LimitStore, Verdict } from '../../middleware/rate-limit/index.ts'
import { askSafely } from './cluster-asking.ts'
import { DECIDE } from './decide-script.ts'
import { type BatchReply, LimitBatch } from './limit-batch.ts'
import { LimitBatches } from './limit-batches.ts'
import { MAX_LEASE_MS, REFUND, RENEW } from './limit-scripts.ts'
import { aPrefix, aRedisClient, promptScript, type RedisClient, type RedisScript } from './redis-script.ts'
import { SlotLeases } from './slot-leases.ts'

/** Options of {@link RedisLimitStore}. */
export interface RedisLimitStoreOptions {
  /** A client of ioredis, which the app connects and closes. */
  redis: RedisClient
  /** The prefix of every key. Its hash tag keeps all keys on one node of a cluster. Defaults to `gateway:{limits}`. */
  prefix?: string
  /** How long a slot lasts without renewal, in milliseconds, at most 30000. Processes that share a Redis may differ. Defaults to 25000. */
  leaseMs?: number
  /** How long Redis may take to answer before it counts as away, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /** Receives the beginning and the end of each outage. Defaults to the console. */
  logger?: Logger
  /** Runs when an outage begins and when it ends, for metrics. Defaults to nothing. */
  onChange?: (away: boolean) => void
  /** Milliseconds since the epoch. Defaults to Redis's own clock, which all processes share. */
  now?: () => number
}

const RULES: OptionRules<RedisLimitStoreOptions> = {
  redis: aRedisClient('sendCommand'),
  prefix: aPrefix,
  leaseMs: aWholeNumber(`whole milliseconds between 1000 and ${MAX_LEASE_MS}`, 1000, MAX_LEASE_MS),
  timeoutMs: someMilliseconds,
  logger: aLogger,
  onChange: aFunction(),
  now: aFunction(),
}

/**
 * A limit store on Redis, whose exact limits all its processes share. One round trip decides all demands of a turn of the
 * event loop.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const redis = new Redis(url)
 * app.use(rateLimit({ store: new RedisLimitStore({ redis }) }))
 */
export class RedisLimitStore implements LimitStore {
  readonly keepsTime = true
  readonly #prefix: string
  readonly #guard: StoreGuard
  readonly #decide: RedisScript
  readonly #refundScript: RedisScript
  readonly #renewScript: RedisScript
  readonly #batches: LimitBatches
  readonly #leases: SlotLeases
  readonly #leaseMs: number
  readonly #now: () => number | ''
  readonly #logger: Logger
  #tellBrokenAt = 0
  /** Demands that Redis did not answer in time, and what became of their calls until a late answer came. */
  readonly #unanswered = new WeakMap<Demand, 'undecided' | 'runs' | 'refused' | 'answered'>()

  constructor(options: RedisLimitStoreOptions) {
    checkOptions('RedisLimitStore', options, RULES)
    const { redis, prefix = 'gateway:{limits}', leaseMs = 25_000, timeoutMs } = options
    const logger = quietLogger(options.logger)
    if (redis.isCluster && !/^[^{]*\{[^}]+\}/.test(prefix))
      throw new TypeError(
        'RedisLimitStore: on a cluster "prefix" needs a hash tag, such as "gateway:{limits}": one script uses several keys',
      )
    askSafely(redis)
    this.#prefix = prefix
    this.#leaseMs = leaseMs
    this.#logger = logger
    this.#now = options.now ?? noClock
    this.#guard = new StoreGuard({
      name: 'redis limits',
      logger,
      ...(timeoutMs !== undefined && { timeoutMs }),
      onChange: (away) => {
        options.onChange?.(away)
        if (!away) this.#leases.reconcile()
      },
    })
    this.#decide = promptScript(redis, DECIDE)
    this.#refundScript = promptScript(redis, REFUND)
    this.#renewScript = promptScript(redis, RENEW)
    this.#batches = new LimitBatches(
      {
        send: (batch) => this.#send(batch),
        admitted: (demand) => this.#hold(demand, true),
        unanswered: (demand) => void this.#unanswered.set(demand, 'undecided'),
        late: (demand, verdict, now) => this.#late(demand, verdict, now),
        unconfirmed: (key, ids) => this.#leases.unconfirmed(key, ids),
        broken: (key) => this.#tellBroken(key),
      },
      this.#guard,
    )
    this.#leases = new SlotLeases(
      {
        renew: (key, ids) => this.#renew(key, ids),
        giveBack: (key, id) => this.#batches.giveBack(key, id),
      },
      this.#guard,
      leaseMs / 3,
    )
  }

  /** Whether Redis is away, as far as this process knows. */
  get away(): boolean {
    return this.#guard.away
  }

  /** The number of outages so far, for metrics. */
  get outages(): number {
    return this.#guard.outages
  }

  /**
   * Asks Redis to decide on demands of nobody, for a readiness check. A process without requests learns only by this that
   * Redis is back.
   *
   * @throws {StoreAway} while Redis does not decide on demands.
   */
  async ping(): Promise<void> {
    // A replica, a Redis that is full or forbids scripts answers PING too. This does all that an admission does.
    const probe = new LimitBatch()
    probe.probe()
    await this.#guard.run(() => this.#send(probe, 1))
  }

  /**
   * Waits until Redis has the slots that came back, or does not answer. Call it after the last call and before the client
   * disconnects. Slots that Redis does not hear of end with their leases. Never rejects.
   */
  close(): Promise<void> {
    this.#leases.giveBackAgain()
    return this.#batches.flush()
  }

  admit(demand: Demand): Promise<Verdict> {
    if (this.#guard.mayAsk()) return this.#batches.ask(demand)
    return Promise.reject(new StoreAway('redis limits is away'))
  }

  hold(demand: Demand): void {
    const wasAsked = this.#unanswered.has(demand)
    if (wasAsked) this.#unanswered.set(demand, 'runs')
    this.#hold(demand, wasAsked)
  }

  release(demand: Demand): Promise<void> | undefined {
    const unanswered = this.#unanswered.get(demand)
    if (unanswered === 'undecided') this.#unanswered.set(demand, 'refused')
    let last: Promise<void> | undefined
    for (const { key } of demand.slots)
      last = this.#leases.release(key, demand.id, unanswered !== undefined) ?? last
    // Batches are answered in their order.
    return last
  }

  ended(sender: string): void {
    this.#batches.ended(sender)
  }

  /** Returns the name of a key in Redis, as rate-limiter-flexible names it. */
  #key(name: string): string {
    return `${this.#prefix}:${name}`
  }

  #renew(key: string, ids: readonly string[]): Promise<unknown> {
    return this.#renewScript([this.#key(key)], [this.#now(), this.#leaseMs, ...ids])
  }

  #hold({ id, slots }: Demand, isKnown: boolean): void {
    for (const { key } of slots) this.#leases.hold(key, id, isKnown)
  }

  #send(batch: LimitBatch, leaseMs = this.#leaseMs): Promise<BatchReply> {
    const { keys, args } = batch.encode(this.#prefix)
    return this.#decide(keys, [this.#now(), leaseMs, ...args]) as Promise<BatchReply>
  }

  /** Logs a key that fails its demands, at most one in a minute: callers may ask for it at any rate. */
  #tellBroken(key: string): void {
    if (performance.now() < this.#tellBrokenAt) return
    this.#tellBrokenAt = performance.now() + 60_000
    this.#logger.error(
      { key },
      'redis limits: a key does not hold what the limits keep there, and its callers cannot be counted: delete it',
    )
  }

  /** Undoes an admission of a refused call. */
  #late(demand: Demand, verdict: Verdict | undefined, now: number): void {
    const wasRefused = this.#unanswered.get(demand) === 'refused'
    this.#unanswered.set(demand, 'answered')
    if (!verdict || verdict.refusedBy) return
    if (wasRefused) this.#refund(demand, verdict, now)
    for (const { key } of demand.slots) this.#leases.takenLate(key, demand.id)
  }

  #refund({ charges }: Demand, { counts }: Verdict, now: number): void {
    charges.forEach(({ key, cost }, i) => {
      const windowEnd = now + (counts[i] as Count).resetMs
      // Without the guard, which may still take Redis for away although it has just answered. What fails here ends with
      // its window.
      this.#refundScript([this.#key(key)], [this.#now(), cost, windowEnd]).catch(() => {})
    })
  }
}

/** Redis's own clock. */
function noClock(): '' {
  return ''
}
