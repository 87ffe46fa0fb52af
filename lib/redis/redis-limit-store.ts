import type { Logger } from '../call/index.ts'
import {
  type Count,
  type Demand,
  GRACE_MS,
  type LimitStore,
  MOST_WAIT_MS,
  PARDON_MS,
  PROLONG_MS,
  SLOT_WAIT_MS,
  type Verdict,
} from '../rate-limit/index.ts'
import { StoreGuard } from '../store-guard/index.ts'
import { CallEnds } from './call-ends.ts'
import { type AdmitReply, LevelsLimiter } from './levels-limiter.ts'
import { ADMIT, PARDON, REFUND, RENEW } from './limit-scripts.ts'
import { type RedisClient, type RedisScript, redisScript } from './redis-script.ts'
import { SlotLeases } from './slot-leases.ts'

/** How much faster a caller's next request may be than the note that its call ended elsewhere, in milliseconds. */
const PARDON_LATE_MS = 250

/** Options of {@link RedisLimitStore}. */
export interface RedisLimitStoreOptions {
  /** A client of ioredis; `enableAutoPipelining` makes it faster under load. The app connects and closes it. */
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
 * Limits shared by all processes on one Redis: exact, and decided in one round trip.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const redis = new Redis(url, { enableAutoPipelining: true })
 * app.use(rateLimit({ store: new RedisLimitStore({ redis }) }))
 */
export class RedisLimitStore implements LimitStore {
  readonly #redis: RedisClient
  readonly #guard: StoreGuard
  readonly #limiter: LevelsLimiter
  readonly #refundScript: RedisScript
  readonly #leases: SlotLeases
  readonly #ends: CallEnds
  readonly #leaseMs: number
  readonly #now: () => number | ''
  readonly #asked = new WeakSet<Demand>()
  /** Demands that nobody could wait for, and that do not run: what they took is to be given back. */
  readonly #abandoned = new WeakSet<Demand>()
  readonly #unanswered = new WeakSet<Demand>()

  constructor(options: RedisLimitStoreOptions) {
    const { redis, prefix = 'gateway:{limits}', leaseMs = 25_000, logger, timeoutMs } = options
    if (typeof redis?.defineCommand !== 'function')
      throw new TypeError('RedisLimitStore: "redis" must be a client of ioredis, such as new Redis(url)')
    if (!(leaseMs >= 1000 && leaseMs <= 30_000))
      throw new TypeError('RedisLimitStore: "leaseMs" must be between 1000 and 30000')
    this.#redis = redis
    this.#leaseMs = leaseMs
    this.#now = options.now ?? (() => '')
    this.#guard = new StoreGuard({
      name: 'redis limits',
      ...(logger && { logger }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      onChange: (away) => {
        options.onChange?.(away)
        if (!away) this.#leases.reconcile()
      },
    })
    const admit = redisScript(redis, 'gatewayLimitsAdmit', ADMIT)
    const renew = redisScript(redis, 'gatewayLimitsRenew', RENEW)
    this.#refundScript = redisScript(redis, 'gatewayLimitsRefund', REFUND)
    this.#limiter = new LevelsLimiter(prefix, (demand) => this.#ask(admit, demand))
    this.#leases = new SlotLeases(
      {
        renew: (key, ids) => renew([key], [this.#now(), leaseMs, ...ids]),
        remove: (key, ids) => redis.zrem(key, ...ids),
      },
      this.#guard,
      leaseMs / 3,
    )
    const pardon = redisScript(redis, 'gatewayLimitsPardon', PARDON)
    this.#ends = new CallEnds((sender, calls) => {
      const args = [this.#now(), MOST_WAIT_MS, PARDON_MS, PROLONG_MS, PARDON_LATE_MS, calls]
      return pardon([this.#waitKey(sender)], args)
    }, this.#guard)
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
   * Asks Redis whether it is there, for a readiness check: a process that is sent no requests while Redis is away learns
   * of its return only so.
   *
   * @throws {StoreAway} while it is not.
   */
  async ping(): Promise<void> {
    await this.#guard.run(() => this.#redis.ping())
  }

  async admit(demand: Demand): Promise<Verdict> {
    let asked: Promise<AdmitReply> | undefined
    try {
      const reply = await this.#guard.run(() => {
        this.#asked.add(demand)
        asked = this.#limiter.consumeAll(demand)
        return asked
      })
      const verdict = verdictOf(demand, reply)
      if (!verdict.refusedBy) this.#hold(demand)
      return verdict
    } catch (error) {
      if (asked) this.#listenOn(demand, asked)
      throw error
    }
  }

  hold(demand: Demand): void {
    this.#unanswered.delete(demand)
    this.#hold(demand)
  }

  release(demand: Demand): void {
    if (this.#unanswered.delete(demand)) this.#abandoned.add(demand)
    const asked = this.#asked.has(demand)
    for (const { key } of demand.slots) this.#leases.release(this.#limiter.getKey(key), demand.id, asked)
  }

  ended(sender: string): void {
    this.#ends.note(sender)
  }

  #waitKey(sender: string): string {
    return this.#limiter.getKey(`wait:${sender}`)
  }

  #hold(demand: Demand): void {
    const asked = this.#asked.has(demand)
    for (const { key } of demand.slots) this.#leases.hold(this.#limiter.getKey(key), demand.id, asked)
  }

  /** An answer may still come; if it was an admission that nobody used, it must not count. */
  #listenOn(demand: Demand, asked: Promise<AdmitReply>): void {
    this.#unanswered.add(demand)
    asked.then(
      (reply) => {
        if (this.#abandoned.delete(demand) && reply[0] === 0) this.#refund(demand, reply)
        this.#unanswered.delete(demand)
      },
      // The guard has told of it, and whether it was admitted nobody will know: at worst too few get through.
      () => this.#unanswered.delete(demand),
    )
  }

  #refund({ charges }: Demand, reply: AdmitReply): void {
    const [, , now = 0] = reply
    charges.forEach(({ key, cost }, i) => {
      const windowEnd = now + (reply[4 + 2 * i] as number)
      // Past the guard, which may think Redis away until somebody's turn to try comes: Redis has just answered, and
      // nobody waits for this. What cannot be given back after all ends with its window.
      this.#refundScript([this.#limiter.getKey(key)], [this.#now(), cost, windowEnd]).catch(() => {})
    })
  }

  #ask(admit: RedisScript, { id, sender, windowMs, charges, slots }: Demand): Promise<AdmitReply> {
    const key = (name: string) => this.#limiter.getKey(name)
    const keys = [
      this.#waitKey(sender),
      ...charges.map((limit) => key(limit.key)),
      ...slots.map((limit) => key(limit.key)),
    ]
    const args = [
      ...[this.#now(), windowMs, charges.length, id, this.#leaseMs],
      ...[MOST_WAIT_MS, SLOT_WAIT_MS, GRACE_MS, PROLONG_MS],
      ...charges.flatMap(({ cost, most }) => [cost, most]),
      ...slots.map(({ most }) => most),
    ]
    return admit(keys, args) as Promise<AdmitReply>
  }
}

function verdictOf({ charges, slots }: Demand, reply: AdmitReply): Verdict {
  const [refusing = 0, waitMs = 0] = reply
  const counts = charges.map(
    (_, i): Count => ({ used: reply[3 + 2 * i] as number, resetMs: reply[4 + 2 * i] as number }),
  )
  // The script counts from 1, counters first.
  const refusedBy = charges[refusing - 1] ?? slots[refusing - 1 - charges.length]
  return { refusedBy, waitMs, counts }
}
