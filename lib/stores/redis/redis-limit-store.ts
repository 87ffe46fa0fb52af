import { type Logger, quietLogger } from '../../core/call/index.ts'
import { Batcher, LimiterStore, NEVER_REACHED } from '../../core/limit-store/index.ts'
import { aFunction, aLogger, aWholeNumber, checkOptions, someMilliseconds } from '../../core/options/index.ts'
import { BrokenRecord, StoreGuard } from '../../core/store-guard/index.ts'
import { askSafely } from './cluster-asking.ts'
import { RedisLimiter } from './redis-limiter.ts'
import { aPrefix, aRedisClient, type RedisClient } from './redis-script.ts'
import { RedisSlots } from './redis-slots.ts'

/** Options of {@link RedisLimitStore}. */
export interface RedisLimitStoreOptions {
  /** A client of ioredis; `enableAutoPipelining` makes it faster under load. The app connects and closes it. */
  redis: RedisClient
  /** The prefix of every key. Without a hash tag a cluster spreads the keys over its nodes. Defaults to `gateway:limits`. */
  prefix?: string
  /** How long a slot lasts without renewal, in milliseconds, at most 30000. Processes that share a Redis may differ. Defaults to 25000. */
  slotLeaseMs?: number
  /**
   * How long Redis may take to answer before it counts as away, in milliseconds; four times as long while it answers other
   * requests. Defaults to 250.
   */
  timeoutMs?: number
  /** Receives the beginning and the end of each outage. Defaults to the console. */
  logger?: Logger
  /** Runs when an outage begins and when it ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
}

const MAX_LEASE_MS = 30_000
/** How many times as long an answer may take while others come. */
const LATE_TIMES = 4

/**
 * Limits that all processes on one Redis share, exact while it answers. Each limit is a key of its own. Windows are whole
 * seconds.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const redis = new Redis(url, { enableAutoPipelining: true })
 * app.use(rateLimit({ store: new RedisLimitStore({ redis }) }))
 */
export class RedisLimitStore extends LimiterStore {
  readonly #slots: RedisSlots

  constructor(options: RedisLimitStoreOptions) {
    checkOptions<RedisLimitStoreOptions>('RedisLimitStore', options, {
      redis: aRedisClient,
      prefix: aPrefix,
      slotLeaseMs: aWholeNumber(`whole milliseconds between 1000 and ${MAX_LEASE_MS}`, 1000, MAX_LEASE_MS),
      timeoutMs: someMilliseconds,
      logger: aLogger,
      onStoreChange: aFunction(),
    })
    const { redis, prefix = 'gateway:limits', slotLeaseMs = 25_000, timeoutMs = 250, onStoreChange } = options
    const logger = quietLogger(options.logger)
    const guard = new StoreGuard({
      name: 'redis limits',
      effect: 'each process counts by itself, or refuses limited calls, as onStoreError says',
      logger,
      timeoutMs,
      // A process that counted by itself would exceed a limit while Redis, or another node of a cluster, answers.
      lateTimeoutMs: LATE_TIMES * timeoutMs,
      onStoreChange: (away) => {
        onStoreChange?.(away)
        if (!away) slots.renew()
      },
    })
    const faultOf = brokenKeys(logger)
    const left = new Batcher(async (key, asked) => {
      const ms = await redis.pttl(`${prefix}:${key}`)
      return asked.map(() => ms)
    })
    const slots = new RedisSlots({ redis, guard, prefix, slotLeaseMs, timeoutMs, faultOf })
    super((windowMs) => limiterOf(redis, prefix, windowMs), {
      guard,
      slots,
      faultOf: (error, key) => faultOf(error, `${prefix}:${key}`),
      msLeft: (key) => left.ask(key, undefined),
    })
    askSafely(redis)
    this.#slots = slots
  }

  /**
   * Asks Redis to do all that an admission does, for a readiness check: a replica, or a Redis that is full, answers PING too.
   * A process without requests learns only by this that Redis is back.
   *
   * @throws {StoreAway} while Redis does not do it.
   */
  ping(): Promise<void> {
    return this.#slots.probe()
  }

  /**
   * Waits until Redis has the slots that came back, or does not answer. Call it after the last call and before the client
   * disconnects. Slots that Redis does not hear of end with their leases. Never rejects.
   */
  close(): Promise<void> {
    return this.#slots.close()
  }
}

/** @throws TypeError if the windows are not whole seconds. */
function limiterOf(redis: RedisClient, prefix: string, windowMs: number): RedisLimiter {
  if (windowMs % 1000 !== 0)
    throw new TypeError(`RedisLimitStore: "windowMs" must be whole seconds, such as 1000, not ${windowMs}`)
  return new RedisLimiter({
    storeClient: redis,
    keyPrefix: prefix,
    points: NEVER_REACHED,
    duration: windowMs / 1000,
  })
}

const BROKEN = /WRONGTYPE|not an integer|would overflow/

/**
 * Returns a function that recognizes the errors of a key which does not hold what the limits keep there. Such a key fails its
 * own requests, and Redis is not away. The log names one in a minute: callers may ask for it at any rate.
 */
function brokenKeys(logger: Logger): (error: Error, key: string) => Error {
  let logsAgainAt = 0
  return (error, key) => {
    if (!BROKEN.test(error.message)) return error
    const message = `${key} has foreign contents: delete it`
    if (performance.now() >= logsAgainAt) {
      logsAgainAt = performance.now() + 60_000
      logger.error({ key }, `redis limits: ${message}`)
    }
    return new BrokenRecord(message, { cause: error })
  }
}
