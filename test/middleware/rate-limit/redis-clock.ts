import { mock } from 'node:test'
import type { Redis } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import type { RedisServer } from '../../support/redis-server.ts'

export const LEASE_MS = 24_000
export const PREFIX = 'gateway:{limits}'

/** Limit stores on one Redis whose time passes when the test says so. */
export class RedisClock {
  readonly #server: RedisServer
  readonly #keeper: Redis
  readonly #clients = new Set<Redis>()
  #now = Date.now()

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
      leaseMs,
      logger,
      timeoutMs: 5000,
      now: () => this.#now,
    })
    return {
      store,
      crash: () => {
        this.#clients.delete(redis)
        redis.disconnect()
      },
    }
  }

  /** Windows end with their keys, so those have to grow older too. */
  async advance(ms: number): Promise<void> {
    this.#now += ms
    const keys = await this.#keeper.keys(`${PREFIX}:[rt]pm:*`)
    const ages = this.#keeper.pipeline()
    for (const key of keys) ages.pttl(key)
    const left = ((await ages.exec()) ?? []).map(([, ttl]) => ttl as number)
    const older = this.#keeper.pipeline()
    for (const [i, key] of keys.entries()) older.pexpire(key, (left[i] as number) - ms)
    await older.exec()
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
    return this.#keeper.zrangebyscore(`${PREFIX}:concurrency:key:${subject}`, `(${this.#now}`, '+inf')
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
