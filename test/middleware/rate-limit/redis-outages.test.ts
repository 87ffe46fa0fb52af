import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import type { Redis } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import { type LimitedAppOptions, limitedApp } from './limited-app.ts'

const KEY = 'gateway:limits:rpm:key:k1'
const SLOTS = 'gateway:limits:concurrency:account:a1'

describe('limits while Redis is away', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  const cleanUp = cleaningUp(afterEach)
  beforeEach(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client({ enableAutoPipelining: true })
    await redis.ping()
  })

  async function limited(t: TestContext, options: LimitedAppOptions) {
    const logger = recordingLogger()
    const changes: boolean[] = []
    const store = new RedisLimitStore({
      redis,
      logger,
      timeoutMs: 1000,
      onStoreChange: (away) => void changes.push(away),
    })
    const app = await limitedApp(t, { store, ...options })
    const timed = async (members?: Parameters<typeof app.ask>[0]) => {
      const start = performance.now()
      const answer = await app.ask(members)
      const took = performance.now() - start
      assert.ok(took < 5000, `took ${took} ms`)
      return answer
    }
    return { app, store, logger, changes, ask: timed }
  }

  it('counts in this process, logs that once, and counts in Redis again when it is back', async (t) => {
    const { store, logger, changes, ask } = await limited(t, { keyRpm: 5 })
    for (let i = 0; i < 5; i++) assert.equal((await ask()).status, 200)
    assert.equal((await ask()).status, 429)
    await server.kill()
    // A window of this process: the one in Redis is out of reach.
    for (let i = 0; i < 5; i++) assert.equal((await ask()).status, 200)
    assert.equal((await ask()).status, 429)
    assert.ok(store.away)
    await server.restart()
    await until(() => redis.status === 'ready')
    for (let i = 0; store.away && i < 100; i++) {
      await ask({ key: 'other' })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    for (let i = 0; i < 5; i++) assert.equal((await ask({ key: 'k2' })).status, 200)
    assert.equal((await ask({ key: 'k2' })).status, 429)
    assert.equal(await redis.get(KEY.replace('k1', 'k2')), '5')
    assert.equal(store.outages, 1)
    assert.deepEqual(changes, [true, false])
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      ['store is away', 'store is back'],
    )
  })

  it('refuses with internal_error, never with 429, where that is asked for', async (t) => {
    const { app, ask } = await limited(t, { keyRpm: 1, concurrency: 1, onStoreError: 'refuse' })
    assert.equal((await ask()).status, 200)
    await server.kill()
    for (let i = 0; i < 5; i++) {
      const refused = await ask()
      assert.equal(refused.status, 500)
      assert.equal(refused.envelope.error.code, 'internal_error')
      assert.equal(refused.headers.get('x-request-id'), refused.envelope.request_id)
    }
    assert.equal(app.handled, 1)
  })

  it('does not wait for a Redis that hangs, and undoes what it did unheard', async (t) => {
    const { app, store, ask } = await limited(t, { keyRpm: 100, concurrency: 100, onStoreError: 'refuse' })
    assert.equal((await ask()).status, 200)
    await until(() => !store.away)
    server.pause()
    const refused = await Promise.all(Array.from({ length: 10 }, () => ask()))
    assert.ok(refused.every(({ status }) => status === 500))
    assert.ok(app.logged.every(({ message }) => message !== 'unforeseen error'))
    server.resume()
    await until(() => redis.status === 'ready')
    let used: string | null = null
    for (let i = 0; i < 100 && (used !== '1' || (await redis.zcard(SLOTS)) > 0); i++) {
      // The next request finds that Redis is back, and the counts of the refused requests are then undone.
      if (store.away) await ask({ key: 'other', account: 'other' })
      await new Promise((resolve) => setTimeout(resolve, 20))
      used = await redis.get(KEY)
    }
    assert.equal(used, '1')
    assert.equal(await redis.zcard(SLOTS), 0)
  })

  it('keeps counting the slots of running calls, before, during and after', async (t) => {
    const waiting: (() => void)[] = []
    const { app, store, ask } = await limited(t, {
      concurrency: 3,
      handler: (req, res) =>
        req.headers['x-key'] === 'probe' ? res.json({}) : waiting.push(() => res.json({})),
    })
    const running = [app.ask(), app.ask()]
    await until(() => waiting.length === 2)
    await server.kill()
    running.push(app.ask())
    await until(() => waiting.length === 3)
    const full = await ask()
    assert.equal(full.envelope.error.code, 'concurrency_limited')
    await server.restart()
    await until(() => redis.status === 'ready')
    for (let i = 0; store.away && i < 100; i++) {
      await ask({ key: 'probe', account: 'other' })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // A fresh Redis has heard of all three.
    assert.equal((await ask()).envelope.error.code, 'concurrency_limited')
    assert.equal(await redis.zcard(SLOTS), 3)
    for (const answer of waiting) answer()
    await Promise.all(running)
    while ((await redis.zcard(SLOTS)) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal((await ask({ key: 'probe' })).status, 200)
  })

  it('gives back the slot of a caller who left while Redis was asked', async (t) => {
    const { app } = await limited(t, { concurrency: 1 })
    server.pause()
    const left = new AbortController()
    const gone = app.ask({ signal: left.signal })
    await until(() => app.calls.length === 1)
    left.abort()
    await assert.rejects(gone)
    await until(() => app.calls[0]?.left === true)
    server.resume()
    await until(() => app.calls[0]?.ended === true)
    while ((await redis.zcard(SLOTS)) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(app.handled, 0)
    assert.equal((await app.ask()).status, 200)
  })

  it('is no fault of a client that the app configured without auto-pipelining', async (t) => {
    const plain = server.client()
    const app = await limitedApp(t, { keyRpm: 2, store: new RedisLimitStore({ redis: plain }) })
    assert.deepEqual(
      (await Promise.all([app.ask(), app.ask(), app.ask()])).map(({ status }) => status).sort(),
      [200, 200, 429],
    )
  })

  it('says at construction what is wrong with an option', () => {
    assert.throws(() => new RedisLimitStore({ redis: {} as Redis }), /must be a client of ioredis/)
    for (const slotLeaseMs of [40_000, 10_000 / 3, Number.NaN])
      assert.throws(() => new RedisLimitStore({ redis, slotLeaseMs }), /"slotLeaseMs"/)
    for (const timeoutMs of [0, Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => new RedisLimitStore({ redis, timeoutMs }), /"timeoutMs"/)
  })
})
