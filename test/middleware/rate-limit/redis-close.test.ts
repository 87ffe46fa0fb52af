import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { demand, limit } from './demands.ts'
import { limitedApp } from './limited-app.ts'

const SLOTS = 'gateway:limits:concurrency:account:a1'

describe('closing limits on Redis', { skip: WITHOUT_REDIS }, () => {
  it('gives the slot of the last call back before the client is disconnected', async (t) => {
    const server = await startRedis()
    t.after(() => server.close())
    const watcher = server.client()
    const redis = new Redis(server.port, '127.0.0.1')
    const logger = recordingLogger()
    const store = new RedisLimitStore({ redis, logger, timeoutMs: 5000 })
    const ask = Promise.withResolvers<() => void>()
    const app = await limitedApp(t, {
      concurrency: 3,
      store,
      handler: (_req, res) => ask.resolve(() => void res.json({})),
    })
    const asked = fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { connection: 'close' },
    })
    const answer = await ask.promise
    assert.equal(await watcher.zcard(SLOTS), 1)
    const closed = once(app.server, 'close')
    app.server.close(async () => {
      await store.close()
      redis.disconnect()
    })
    answer()
    await (await asked).text()
    await closed
    await once(redis, 'end')
    assert.equal(await watcher.zcard(SLOTS), 0)
    assert.deepEqual(logger.lines, [])
  })

  it('does not wait for a Redis that does not answer', async (t) => {
    const server = await startRedis()
    t.after(() => server.close())
    const store = new RedisLimitStore({ redis: server.client(), logger: recordingLogger(), timeoutMs: 500 })
    const held = demand([limit('concurrency', 's', 1)])
    await store.admit(held)
    server.pause()
    store.release(held)
    const began = performance.now()
    await store.close()
    assert.ok(performance.now() - began < 4000)
    await store.close()
  })

  it('gives back what an outage kept, before the next round of leases does', async (t) => {
    const server = await startRedis()
    t.after(() => server.close())
    const redis = server.client()
    const store = new RedisLimitStore({ redis, logger: recordingLogger(), timeoutMs: 5000 })
    const held = demand([limit('concurrency', 's', 1)])
    await store.admit(held)
    await redis.config('SET', 'maxmemory', '1')
    await assert.rejects(store.ping())
    assert.ok(store.away)
    await store.release(held)
    assert.equal(await redis.zcard('gateway:limits:concurrency:key:s'), 1)
    await redis.config('SET', 'maxmemory', '0')
    await untilAsync(() =>
      store.ping().then(
        () => true,
        () => false,
      ),
    )
    await store.close()
    assert.equal(await redis.zcard('gateway:limits:concurrency:key:s'), 0)
  })
})
