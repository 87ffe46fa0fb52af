import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { BrokenRecord } from '../../../lib/core/store-guard/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const BROKEN: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  'a string': (redis, key) => redis.set(key, 'x'),
  'a list': (redis, key) => redis.rpush(key, 'x'),
  'a record without a time': (redis, key) =>
    redis.hset(key, { owner: 'o', fingerprint: 'f', state: 'running' }),
  'a record whose time is no number': (redis, key) =>
    redis.hset(key, { owner: 'o', fingerprint: 'f', state: 'completed', expires: 'never' }),
}

describe('a key that holds no record', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  before(async () => {
    server = await startRedis()
    redis = server.client()
  })
  after(() => server.close())

  for (const [what, write] of Object.entries(BROKEN)) {
    it(`because it holds ${what} frees no claim, and fails no other`, async () => {
      const store = new RedisIdempotencyStore({ redis })
      await write(redis, `gateway:idempotency:${what}`)
      const now = Date.now()
      const ask = (id: string) =>
        store.claim({ id, owner: 'me', fingerprint: 'f', now, leaseUntil: now + 60_000 })
      const [broken, other] = await Promise.allSettled([ask(what), ask(`${what} beside it`)])
      assert.ok(broken.status === 'rejected' && broken.reason instanceof BrokenRecord)
      assert.deepEqual(other, { status: 'fulfilled', value: undefined })
      const claims = [what, `${what} beside it`].map((id) => ({ id, owner: 'me' }))
      assert.deepEqual(await store.renew(claims, now + 60_000), [false, true])
    })
  }
})
