import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterUnion,
} from 'rate-limiter-flexible'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { LimiterStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { demand, limit } from './demands.ts'
import { limitedApp } from './limited-app.ts'

const WINDOW = { points: 100, duration: 60 }
const tokens = (cost: number, subject = 's') => demand([limit('tpm', subject, 100, cost)])

let server: RedisServer | undefined
before(async () => {
  if (!WITHOUT_REDIS) server = await startRedis()
})
after(() => server?.close())

let prefixes = 0
const onRedis = (options: object = {}) =>
  new RateLimiterRedis({ storeClient: server!.client(), keyPrefix: `p${++prefixes}`, ...WINDOW, ...options })

for (const [name, open, skip] of [
  ['memory', () => new RateLimiterMemory(WINDOW), false],
  ['Redis', () => onRedis(), WITHOUT_REDIS],
] as const)
  describe(`a limit over the ${name} limiter of rate-limiter-flexible`, { skip }, () => {
    const consumed = async (limiter: RateLimiterAbstract) => (await limiter.get('tpm:key:s'))?.consumedPoints

    it('admits up to the limit and refuses what is above it until the window ends', async () => {
      const store = new LimiterStore(open())
      const first = await store.admit(tokens(60))
      assert.equal(first.refusedBy, undefined)
      assert.equal(first.counts[0]?.used, 60)
      const asked = tokens(41)
      const refused = await store.admit(asked)
      assert.equal(refused.refusedBy, asked.charges[0])
      assert.equal(refused.counts[0]?.used, 60)
      assert.ok(refused.waitMs > 58_000 && refused.waitMs <= 60_000, `${refused.waitMs}`)
    })

    it('counts nothing for what it refused', async () => {
      const limiter = open()
      const store = new LimiterStore(limiter)
      await store.admit(tokens(60))
      for (let i = 0; i < 5; i++) {
        assert.ok((await store.admit(tokens(41))).refusedBy)
        while ((await consumed(limiter)) !== 60) await turn()
      }
      assert.equal((await store.admit(tokens(40))).counts[0]?.used, 100)
    })

    it('answers requests as rateLimit does over any other store', async (t) => {
      const limiter = open()
      limiter.points = 2
      const app = await limitedApp(t, {
        levels: [{ name: 'ip', by: (req) => req.ip, requests: limiter.points }],
        windowMs: limiter.msDuration,
        store: new LimiterStore(limiter),
      })
      const answers = [await app.ask(), await app.ask(), await app.ask()]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 429],
      )
      assert.deepEqual(
        answers.map(({ headers }) => headers.get('x-ratelimit-remaining-requests')),
        ['1', '0', '0'],
      )
      const wait = Number(answers[2]?.headers.get('retry-after'))
      assert.ok(wait >= 58 && wait <= 60, `${wait}`)
      assert.equal(app.handled, 2)
    })
  })

describe('points of a refused request', () => {
  it('are not given back in the last 300 ms of their window', async (t) => {
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
    t.after(() => mock.timers.reset())
    const limiter = new RateLimiterMemory(WINDOW)
    const store = new LimiterStore(limiter)
    await store.admit(tokens(60))
    const consumedAfterRefusal = async () => {
      await store.admit(tokens(41))
      await turn()
      return (await limiter.get('tpm:key:s'))?.consumedPoints
    }
    mock.timers.tick(59_699)
    assert.equal(await consumedAfterRefusal(), 60)
    mock.timers.tick(1)
    assert.equal(await consumedAfterRefusal(), 101)
  })

  it('that come too late, into the next window, are taken again', async () => {
    let now = 0
    /** Gives back when the window is over. */
    class Slow extends RateLimiterMemory {
      override async reward(key: string, points: number) {
        await this.delete(key)
        now += 60_000
        return super.reward(key, points)
      }
    }
    const clock = mock.method(performance, 'now', () => now)
    try {
      const limiter = new Slow(WINDOW)
      const store = new LimiterStore(limiter)
      await store.admit(tokens(60))
      assert.ok((await store.admit(tokens(41))).refusedBy)
      await turn()
      assert.equal((await limiter.get('tpm:key:s'))?.consumedPoints, 0)
    } finally {
      clock.mock.restore()
    }
  })

  it('are not given back by a limiter that refused them without counting', {
    skip: WITHOUT_REDIS,
  }, async () => {
    const limiter = onRedis({ inMemoryBlockOnConsumed: 100 })
    const store = new LimiterStore(limiter)
    await store.admit(tokens(100))
    const refused = await store.admit(tokens(10))
    assert.ok(refused.refusedBy)
    assert.equal(refused.counts[0]?.used, 100)
    await turn()
    assert.equal((await limiter.get('tpm:key:s'))?.consumedPoints, 100)
  })
})

describe('a limiter that fails', () => {
  class Failing extends RateLimiterMemory {
    override consume(): Promise<never> {
      return Promise.reject(new Error('no connection'))
    }
  }
  const levels = [{ name: 'ip', by: () => 'all', rpm: 2 }]
  const store = () =>
    new LimiterStore(new Failing({ points: 2, duration: 60 }), { logger: recordingLogger() })

  it('never refuses a request with a 429 of its own', async (t) => {
    const app = await limitedApp(t, { levels, store: store(), onStoreError: 'refuse' })
    assert.equal((await app.ask()).envelope.error.code, 'internal_error')
    assert.equal(app.handled, 0)
  })

  it('is stood in for by the memory of the process', async (t) => {
    const app = await limitedApp(t, { levels, store: store() })
    const statuses = [(await app.ask()).status, (await app.ask()).status, (await app.ask()).status]
    assert.deepEqual(statuses, [200, 200, 429])
  })

  for (const [name, runs, left] of [
    ['is given back where the request was refused', false, 0],
    ['stays counted where the request ran', true, 30],
  ] as const)
    it(`and admits too late: what it counted ${name}`, async () => {
      const answer = Promise.withResolvers<void>()
      class Late extends RateLimiterMemory {
        override async consume(key: string, points: number) {
          const consumed = await super.consume(key, points)
          await answer.promise
          return consumed
        }
      }
      const limiter = new Late(WINDOW)
      const late = new LimiterStore(limiter, { timeoutMs: 20, logger: recordingLogger() })
      const asked = tokens(30)
      await assert.rejects(late.admit(asked), StoreAway)
      if (runs) late.hold(asked)
      else late.release(asked)
      answer.resolve()
      await turn()
      assert.equal((await limiter.get('tpm:key:s'))?.consumedPoints, left)
    })
})

describe('a limiter that does not fit', () => {
  it('is reported at construction', () => {
    const union = new RateLimiterUnion(new RateLimiterMemory(WINDOW)) as unknown as RateLimiterAbstract
    assert.throws(() => new LimiterStore(union), /"points" and "duration"/)
    for (const option of [{ blockDuration: 60 }, { execEvenly: true }])
      assert.throws(
        () => new LimiterStore(new RateLimiterMemory({ ...WINDOW, ...option })),
        /"blockDuration"/,
      )
  })

  it('is refused at construction where the window is another', () => {
    const levels = [{ name: 'ip', by: () => 'all', requests: 100 }]
    const store = new LimiterStore(new RateLimiterMemory(WINDOW))
    assert.throws(() => rateLimit({ levels, windowMs: 30_000, store }), /a "windowMs" of 60000/)
  })
})

it('one limiter counts all limits of a request, each up to its own maximum, beside slots', async (t) => {
  const app = await limitedApp(t, {
    keyRpm: 3,
    rpm: 4,
    tpm: 500,
    concurrency: 2,
    store: new LimiterStore(new RateLimiterMemory({ points: 1, duration: 60 })),
  })
  const statusOf = async (key: string, tokens = 1) => (await app.ask({ key, tokens })).status
  assert.deepEqual([await statusOf('k1', 498), await statusOf('k1'), await statusOf('k1')], [200, 200, 200])
  assert.equal(await statusOf('k1'), 429)
  assert.equal(await statusOf('k2', 1), 429, 'the tokens of the account')
  assert.equal(await statusOf('k2', 0), 200)
  assert.equal(await statusOf('k2', 0), 429, 'the requests of the account')
})

describe('of requests that are refused at the same time', () => {
  it('one that would fit waits for a second, and is admitted then', async () => {
    const store = new LimiterStore(new RateLimiterMemory(WINDOW))
    const [large, small] = [tokens(95), tokens(40)]
    await store.admit(tokens(50))
    const [refused, unlucky] = await Promise.all([store.admit(large), store.admit(small)])
    assert.ok(refused.waitMs > 50_000)
    assert.deepEqual([unlucky.refusedBy, unlucky.waitMs], [small.charges[0], 1000])
    assert.equal((await store.admit(tokens(40))).refusedBy, undefined)
  })
})
