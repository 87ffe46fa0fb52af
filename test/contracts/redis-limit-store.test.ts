import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { RedisLimitStore } from '../../lib/stores/redis/index.ts'
import { demand, limit, WINDOW_MS } from '../middleware/rate-limit/demands.ts'
import { PREFIX, RedisClock } from '../middleware/rate-limit/redis-clock.ts'
import { startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'
import { limitCounterContract } from './limit-counter.ts'
import { limitWaitContract } from './limit-wait.ts'
import { slotStoreContract } from './slot-store.ts'

const open = async () => {
  const clock = new RedisClock(await startRedis())
  return {
    store: clock.open().store,
    advance: (ms: number) => clock.advance(ms),
    renew: () => clock.renew(),
    close: () => clock.close(),
  }
}

limitCounterContract('Redis', open, { skip: WITHOUT_REDIS })
limitWaitContract('Redis', open, { skip: WITHOUT_REDIS })
slotStoreContract('Redis', open, { skip: WITHOUT_REDIS })

it("an operator reads and resets counters with rate-limiter-flexible's own limiter", {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const server = await startRedis()
  t.after(() => server.close())
  const redis = server.client()
  const store = new RedisLimitStore({ redis, timeoutMs: 5000 })
  const ask = async () => (await store.admit(demand([limit('rpm', 'k1', 2)]))).refusedBy === undefined
  assert.deepEqual([await ask(), await ask(), await ask()], [true, true, false])
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: PREFIX,
    points: 2,
    duration: WINDOW_MS / 1000,
  })
  assert.equal((await limiter.get('rpm:key:k1'))?.consumedPoints, 2)
  await limiter.delete('rpm:key:k1')
  assert.equal(await ask(), true)
})
