import type { Logger } from '../../core/call/index.ts'
import { StoreAway, StoreGuard } from '../../core/store-guard/index.ts'
import type { Count, Demand, LimitStore, Verdict } from '../../middleware/rate-limit/index.ts'
import { DECIDE } from './decide-script.ts'
import type { BatchReply, LimitBatch } from './limit-batch.ts'
import { LimitBatches } from './limit-batches.ts'
import { REFUND, RENEW } from './limit-scripts.ts'
import { promptScript, type RedisClient, type RedisScript } from './redis-script.ts'
import { SlotLeases } from './slot-leases.ts'

/** Options of {@link RedisLimitStore}. */
export interface RedisLimitStoreOptions {
  /** A client of ioredis. The app connects and closes it. */
  redis: RedisClient
  /** Begins every key. Its hash tag keeps all keys on one node of a cluster. Defaults to `gateway:{limits}`. */
  prefix?: string
  /** How long a slot is kept without being renewed, in milliseconds, at most 30000. Defaults to 25000. */
  leaseMs?: number
  /** How long Redis may take to answer before it counts as away, in milliseconds. Defaults to 250. */
  timeoutMs?: number
  /** Is told when Redis goes away and when it is back. Defaults to the console. */
  logger?: Logger
  /** Called when Redis goes away and comes back, for metrics. */
  onChange?: (away: boolean) => void
  /** Milliseconds since the epoch. Defaults to Redis's own clock, which all processes share. */
  now?: () => number
}

/**
 * Limits shared by all processes on one Redis: exact, and decided in one round trip, together with whatever else the same
 * turn of the event loop asks and gives back.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const redis = new Redis(url)
 * app.use(rateLimit({ store: new RedisLimitStore({ redis }) }))
 */
export class RedisLimitStore implements LimitStore {
  readonly #prefix: string
  readonly #guard: StoreGuard
  readonly #decide: RedisScript
  readonly #refundScript: RedisScript
  readonly #renewScript: RedisScript
  readonly #batches: LimitBatches
  readonly #leases: SlotLeases
  readonly #leaseMs: number
  readonly #now: () => number | ''
  /** Demands that Redis was asked for and that got no answer in time. */
  readonly #failed = new WeakSet<Demand>()
  /** Those among them whose answer may still come. */
  readonly #unanswered = new WeakSet<Demand>()
  /** Those among them that do not run: what they took is to be given back. */
  readonly #abandoned = new WeakSet<Demand>()

  constructor(options: RedisLimitStoreOptions) {
    const { redis, prefix = 'gateway:{limits}', leaseMs = 25_000, logger, timeoutMs } = options
    if (typeof redis?.defineCommand !== 'function')
      throw new TypeError('RedisLimitStore: "redis" must be a client of ioredis, such as new Redis(url)')
    if (!(Number.isInteger(leaseMs) && leaseMs >= 1000 && leaseMs <= 30_000))
      throw new TypeError('RedisLimitStore: "leaseMs" must be whole milliseconds between 1000 and 30000')
    if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0))
      throw new TypeError('RedisLimitStore: "timeoutMs" must be a positive whole number of milliseconds')
    if (redis.isCluster && !/^[^{]*\{[^}]+\}/.test(prefix))
      throw new TypeError(
        'RedisLimitStore: on a cluster "prefix" needs a hash tag, such as "gateway:{limits}": one script uses several keys',
      )
    this.#prefix = prefix
    this.#leaseMs = leaseMs
    this.#now = options.now ?? noClock
    this.#guard = new StoreGuard({
      name: 'redis limits',
      ...(logger && { logger }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      onChange: (away) => {
        options.onChange?.(away)
        if (!away) this.#leases.reconcile()
      },
    })
    this.#decide = promptScript(redis, 'gatewayLimitsDecide', DECIDE)
    this.#refundScript = promptScript(redis, 'gatewayLimitsRefund', REFUND)
    this.#renewScript = promptScript(redis, 'gatewayLimitsRenew', RENEW)
    this.#batches = new LimitBatches(
      {
        send: (batch) => this.#send(batch),
        admitted: (demand) => this.#hold(demand, true),
        unanswered: (demand) => {
          this.#failed.add(demand)
          this.#unanswered.add(demand)
        },
        late: (demand, verdict, now) => this.#late(demand, verdict, now),
        unconfirmed: (key, ids) => this.#leases.unconfirmed(key, ids),
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

  /** Whether Redis is away as far as is known. */
  get away(): boolean {
    return this.#guard.away
  }

  /** Outages so far, for metrics. */
  get outages(): number {
    return this.#guard.outages
  }

  /**
   * Asks Redis whether it is there and takes writes, for a readiness check: a process that is sent no requests while
   * Redis is away learns of its return only so.
   *
   * @throws {StoreAway} while it is not.
   */
  async ping(): Promise<void> {
    // Not PING, which a replica and a Redis out of order answer too: this writes nothing, and only where it could.
    await this.#guard.run(() => this.#renew('ping', []))
  }

  /**
   * For the end of the process, behind the last call and before the client is disconnected: waits until Redis has the
   * slots that came back, or does not answer. What it does not hear of ends with its lease. Never rejects.
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
    this.#unanswered.delete(demand)
    this.#hold(demand, this.#failed.has(demand))
  }

  release(demand: Demand): void {
    if (this.#unanswered.delete(demand)) this.#abandoned.add(demand)
    for (const { key } of demand.slots) this.#leases.release(key, demand.id, this.#failed.has(demand))
  }

  ended(sender: string): void {
    this.#batches.ended(sender)
  }

  /** What a key is called in Redis, as rate-limiter-flexible calls it. */
  #key(name: string): string {
    return `${this.#prefix}:${name}`
  }

  #renew(key: string, ids: readonly string[]): Promise<unknown> {
    return this.#renewScript([this.#key(key)], [this.#now(), this.#leaseMs, ...ids])
  }

  #hold({ id, slots }: Demand, told: boolean): void {
    for (const { key } of slots) this.#leases.hold(key, id, told)
  }

  #send(batch: LimitBatch): Promise<BatchReply> {
    const { keys, args } = batch.encode(this.#prefix)
    return this.#decide(keys, [this.#now(), this.#leaseMs, ...args]) as Promise<BatchReply>
  }

  /** An admission that nobody used must not count. */
  #late(demand: Demand, verdict: Verdict | undefined, now: number): void {
    const unused = this.#abandoned.delete(demand)
    this.#unanswered.delete(demand)
    if (!verdict || verdict.refusedBy) return
    if (unused) this.#refund(demand, verdict, now)
    for (const { key } of demand.slots) this.#leases.takenLate(key, demand.id)
  }

  #refund({ charges }: Demand, { counts }: Verdict, now: number): void {
    charges.forEach(({ key, cost }, i) => {
      const windowEnd = now + (counts[i] as Count).resetMs
      // Past the guard, which may think Redis away until somebody's turn to try comes: Redis has just answered, and
      // nobody waits for this. What cannot be given back after all ends with its window.
      this.#refundScript([this.#key(key)], [this.#now(), cost, windowEnd]).catch(() => {})
    })
  }
}

/** Redis's own clock. */
function noClock(): '' {
  return ''
}
