import { mock } from 'node:test'
import type { Redis } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import type { RedisServer } from '../../support/redis-server.ts'

export const LEASE_MS = 24_000
export const PREFIX = 'gateway:limits'

/** Makes the leases in a set of slots older. */
const OLDER =
  "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZINCRBY', KEYS[1], -ARGV[1], id) end"

/** Limit stores on one Redis whose time passes when the test says so. */
export class RedisClock {
  readonly #server: RedisServer
  readonly #keeper: Redis
  readonly #clients = new Set<Redis>()

  /** Renewals go by setInterval, which is the test's from now on. */
  constructor(server: RedisServer) {
    this.#server = server
    this.#keeper = server.client()
    mock.timers.enable({ apis: ['setInterval'] })
  }

  /** A store as a process of its own has it, and the end of that process. */
  open(leaseMs = LEASE_MS): { store: RedisLimitStore; crash(): void } {
    const redis = this.#server.client({ enableAutoPipelining: true })
    this.#clients.add(redis)
    const logger = { info() {}, warn() {}, error() {} }
    const store = new RedisLimitStore({
      redis,
      slotLeaseMs: leaseMs,
      logger,
      timeoutMs: 5000,
    })
    return {
      store,
      crash: () => {
        this.#clients.delete(redis)
        redis.disconnect()
      },
    }
  }

  /** Makes everything that Redis has of the limits older. */
  async advance(ms: number): Promise<void> {
    const redis = this.#keeper
    for (const key of await redis.keys(`${PREFIX}:*`)) {
      if (key.startsWith(`${PREFIX}:concurrency:`)) await redis.eval(OLDER, 1, key, ms)
      await redis.pexpire(key, (await redis.pttl(key)) - ms)
    }
  }

  /** Every process renews once, and Redis has heard of it. */
  async renew(): Promise<void> {
    mock.timers.tick(LEASE_MS / 3)
    await this.settled()
  }

  /** Waits until Redis has done all that was asked so far. */
  async settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    for (const client of this.#clients) await client.ping()
  }

  /** Ids of the slots that Redis counts at present. */
  async slots(subject: string): Promise<string[]> {
    return this.#keeper.zrangebyscore(`${PREFIX}:concurrency:key:${subject}`, `(${Date.now()}`, '+inf')
  }

  /** How long Redis itself keeps the slots without a renewal, in milliseconds. */
  async lifeOf(subject: string): Promise<number> {
    return this.#keeper.pttl(`${PREFIX}:concurrency:key:${subject}`)
  }

  async close(): Promise<void> {
    mock.timers.reset()
    await this.#server.close()
  }
}
