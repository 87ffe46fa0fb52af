import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type LimitedProcess,
  type LimitSettings,
  load,
  shareOf,
  startLimited,
} from '../../middleware/rate-limit/load.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

describe('two processes on one Redis under load', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  const cleanUp = cleaningUp()
  before(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
  })

  /** Two processes of the same limits. */
  async function withTwo(
    settings: LimitSettings,
    run: (urls: string[], two: LimitedProcess[]) => Promise<void>,
  ) {
    await server.client().flushall()
    const two = await Promise.all([startLimited(server.port, settings), startLimited(server.port, settings)])
    try {
      await run(
        two.map(({ url }) => url),
        two,
      )
    } finally {
      await Promise.all(two.map((each) => each.kill()))
    }
  }

  it('admit together what the request limit allows, no more and hardly less', async () => {
    await withTwo({ rpm: 100, windowMs: 3000 }, async (urls) => {
      const end = performance.now() + 7500
      const replies = await load({
        urls,
        callers: 30,
        done: ({ status }) => status === 429 && performance.now() > end,
      })
      const admitted = replies.filter(({ status }) => status === 200)
      assert.ok(replies.every(({ status }) => status === 200 || status === 429))
      const { windows, ratio, fullest } = shareOf(
        admitted.map(({ remainingRequests }) => remainingRequests),
        100,
        1,
      )
      assert.ok(windows >= 2, `${windows} windows`)
      assert.ok(fullest <= 1, `fullest ${fullest}`)
      assert.ok(ratio >= 0.98 && ratio <= 1, `admitted over configured: ${ratio}`)
    })
  })

  it('admit together what the token limit allows, no more and hardly less', async () => {
    await withTwo({ tpm: 1400, windowMs: 3000 }, async (urls) => {
      const end = performance.now() + 7500
      const replies = await load({
        urls,
        callers: 30,
        headers: { 'x-tokens': '7' },
        done: ({ status }) => status === 429 && performance.now() > end,
      })
      const admitted = replies.filter(({ status }) => status === 200)
      const { windows, ratio, fullest } = shareOf(
        admitted.map(({ remainingTokens }) => remainingTokens),
        1400,
        7,
      )
      assert.ok(windows >= 2, `${windows} windows`)
      assert.ok(fullest <= 1, `fullest ${fullest}`)
      assert.ok(ratio >= 0.98 && ratio <= 1, `admitted over configured: ${ratio}`)
    })
  })

  it('run together as many requests as there are slots, never more', async () => {
    await withTwo({ concurrency: 10 }, async (urls) => {
      const end = performance.now() + 2500
      const replies = await load({
        urls,
        callers: 40,
        spreadMs: 500,
        headers: { 'x-hold': '200' },
        done: () => performance.now() > end,
      })
      const running = replies.flatMap(({ running }) => running ?? [])
      assert.equal(Math.max(...running), 10)
      assert.ok(running.length >= 80, `${running.length} of at most 130 were admitted`)
    })
  })

  it('neither hang nor refuse anybody by accident while Redis is killed', async () => {
    await withTwo({ rpm: 1e6, tpm: 1e9, concurrency: 1000, windowMs: 60_000 }, async (urls) => {
      const started = performance.now()
      const loading = load({
        urls,
        callers: 20,
        pauseMs: 5,
        headers: { 'x-tokens': '10' },
        done: () => performance.now() - started > 3500,
      })
      await sleep(700)
      await server.kill()
      await sleep(1800)
      await server.restart()
      const replies = await loading
      const statuses = new Set(replies.map(({ status }) => status))
      assert.deepEqual([...statuses], [200])
      const slowest = Math.max(...replies.map(({ took }) => took))
      assert.ok(slowest < 5000, `the slowest took ${slowest} ms`)
      // It counts again: the limits are in the new Redis.
      assert.ok(Number(await server.client().get('gateway:limits:rpm:key:shared')) > 0)
    })
  })

  it('give the slots of a killed process back within 30 seconds', async () => {
    await withTwo({ concurrency: 2 }, async (urls, [first]) => {
      const held = load({ urls: [urls[0]!], callers: 2, headers: { 'x-hold': '60000' }, done: () => true })
      held.catch(() => {})
      const redis = server.client()
      const slots = 'gateway:limits:concurrency:key:shared'
      while ((await redis.zcard(slots)) < 2) await sleep(10)
      await first!.kill()
      const [seconds, micros] = await redis.time()
      const ends = await redis.zrange(slots, '0', '-1', 'WITHSCORES')
      for (const end of [ends[1], ends[3]]) {
        const left = Number(end) - (Number(seconds) * 1000 + Number(micros) / 1000)
        assert.ok(left > 0 && left <= 30_000, `${left} ms left`)
      }
    })
  })
})
