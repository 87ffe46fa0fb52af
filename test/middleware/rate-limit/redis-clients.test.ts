import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisIdempotencyStore, RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { demand, limit } from './demands.ts'

const silent = { info() {}, warn() {}, error() {} }

async function clientWith(
  t: TestContext,
  options: { stringNumbers?: boolean },
): Promise<{ server: RedisServer; redis: Redis }> {
  const server = await startRedis()
  const redis = new Redis(server.port, '127.0.0.1', options)
  t.after(async () => {
    redis.disconnect()
    await server.close()
  })
  return { server, redis }
}

it('a client that reads numbers as texts has its late charges back', { skip: WITHOUT_REDIS }, async (t) => {
  const { server, redis } = await clientWith(t, { stringNumbers: true })
  const store = new RedisLimitStore({ redis, logger: silent, timeoutMs: 1000 })
  const rpm = limit('rpm', 's', 5)
  await store.admit(demand([rpm]))
  server.pause()
  const late = demand([rpm])
  await assert.rejects(store.admit(late), StoreAway)
  store.release(late)
  server.resume()
  await untilAsync(async () => (await redis.incrby('gateway:limits:rpm:key:s', 0)).toString() === '1')
})

it('a client that reads numbers as texts keeps its claims on keys', { skip: WITHOUT_REDIS }, async (t) => {
  const { redis } = await clientWith(t, { stringNumbers: true })
  const store = new RedisIdempotencyStore({ redis })
  const [claim, later] = [{ id: 'i', owner: 'o' }, Date.now() + 60_000]
  assert.equal(
    await store.claim({ ...claim, fingerprint: 'f', now: Date.now(), leaseUntil: later }),
    undefined,
  )
  assert.deepEqual(await store.renew([claim], later), [true])
  assert.equal(await store.complete(claim, later), true)
  assert.equal(await store.complete({ ...claim, owner: 'other' }, later), false)
})
