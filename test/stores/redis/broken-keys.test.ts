import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const PREFIX = 'gateway:limits:'

/** Values that may stand in a key instead of what belongs there. */
const OTHERS: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  'a list': (redis, key) => redis.rpush(key, 'x'),
  'a set': (redis, key) => redis.sadd(key, 'x'),
  'a hash': (redis, key) => redis.hset(key, 'x', 'y'),
  'a stream': (redis, key) => redis.xadd(key, '*', 'x', 'y'),
  'a text': (redis, key) => redis.set(key, 'abc'),
  'a fraction': (redis, key) => redis.set(key, '12.5'),
  'the largest number': (redis, key) => redis.set(key, '9223372036854775807'),
}

describe('a key that does not hold what the limits keep there', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  before(async () => {
    server = await startRedis()
    redis = server.client()
  })
  after(() => server.close())

  for (const [what, write] of Object.entries(OTHERS))
    for (const kind of ['rpm', 'concurrency'] as const)
      it(`${what} in place of ${kind} fails its own subject and no other, and is logged once`, async () => {
        const logger = recordingLogger()
        const store = new RedisLimitStore({ redis, logger, timeoutMs: 5000 })
        const mine = limit(kind, what, 5)
        const other = [
          limit('rpm', `other ${what} ${kind}`, 2),
          limit('concurrency', `other ${what} ${kind}`, 2),
        ]
        await write(redis, PREFIX + mine.key)
        const [first, failed, second] = await Promise.allSettled([
          store.admit(demand(other)),
          store.admit(demand([mine])),
          store.admit(demand(other)),
        ])
        assert.ok(failed.status === 'rejected' && failed.reason instanceof StoreAway)
        for (const each of [first, second])
          assert.ok(each.status === 'fulfilled' && each.value.refusedBy === undefined)
        await assert.rejects(store.admit(demand([mine])), StoreAway)
        await store.ping()
        assert.deepEqual([store.away, store.outages], [false, 0])
        assert.deepEqual(
          logger.lines.map(({ fields }) => fields.key),
          [PREFIX + mine.key],
        )
      })
})
