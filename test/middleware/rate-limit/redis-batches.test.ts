import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Request } from 'express'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import type { Demand, Limit, Verdict } from '../../../lib/middleware/rate-limit/index.ts'
import { MemoryLimitStore } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { demand, limit } from './demands.ts'
import { limitedApp } from './limited-app.ts'

const silent = { info() {}, warn() {}, error() {} }

describe('demands of one turn of the event loop in Redis', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  let store: RedisLimitStore
  const cleanUp = cleaningUp(afterEach)
  beforeEach(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client({ enableAutoPipelining: true })
    await redis.ping()
    store = new RedisLimitStore({ redis, logger: silent, timeoutMs: 2000 })
  })

  const all = (demands: readonly Demand[]) => Promise.all(demands.map((each) => store.admit(each)))
  const many = (count: number, limits: readonly Limit[]) =>
    Array.from({ length: count }, () => demand(limits, { sender: 's' }))

  async function scripts(): Promise<number> {
    const stats = await redis.info('commandstats')
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    )
  }

  it('go out as one script, with what comes back in it, and a hundred at most', async () => {
    const limits = [limit('rpm', 's', 1e6), limit('tpm', 's', 1e6, 7), limit('concurrency', 's', 1e6)]
    const first = many(20, limits)
    await all(first)
    assert.equal(await scripts(), 1)
    for (const each of first) store.release(each)
    store.ended('s')
    await all(many(30, limits))
    assert.equal(await scripts(), 2)
    assert.equal(await redis.zcard('gateway:{limits}:concurrency:key:s'), 30)
    await all(many(250, limits))
    assert.equal(await scripts(), 5)
    assert.equal(await redis.get('gateway:{limits}:tpm:key:s'), `${300 * 7}`)
  })

  it('sees a slot that came back before it in the same turn', async () => {
    const slot = limit('concurrency', 's', 1)
    const [first, second, third] = many(3, [slot]) as [Demand, Demand, Demand]
    await store.admit(first)
    store.release(first)
    const [taken, refused] = await all([second, third])
    assert.equal(taken?.refusedBy, undefined)
    assert.equal(refused?.refusedBy, slot)
  })

  it('counts a slot once that is asked for twice, and none whose lease is over', async () => {
    const slot = limit('concurrency', 's', 2)
    const twice = demand([slot])
    const now = Date.now()
    await redis.zadd('gateway:{limits}:concurrency:key:s', now - 1, 'dead', now - 2, 'gone')
    const verdicts = await all([twice, twice, demand([slot]), demand([slot])])
    assert.deepEqual(
      verdicts.map(({ refusedBy }) => refusedBy === undefined),
      [true, true, true, false],
    )
  })

  it('are told what those before them took, whoever they share a counter with', async () => {
    const [shared, own] = [limit('tpm', 'account', 100, 30), limit('rpm', 'key', 2)]
    const verdicts = await all([
      demand([shared, own]),
      demand([shared]),
      demand([shared, own]),
      demand([shared, own]),
    ])
    assert.deepEqual(
      verdicts.map(({ refusedBy, counts }) => [refusedBy, counts.map(({ used }) => used)]),
      [
        [undefined, [30, 1]],
        [undefined, [60]],
        [undefined, [90, 2]],
        // Both refuse; their windows began together.
        [verdicts[3]?.refusedBy, [90, 2]],
      ],
    )
    assert.ok(verdicts[3]?.refusedBy)
  })

  it('are decided as a store in memory decides them one after the other', async () => {
    const kinds = [
      ['rpm', 'a', 6, 1],
      ['tpm', 'a', 40, 9],
      ['rpm', 'b', 9, 1],
      ['tpm', 'b', 50, 4],
      ['concurrency', 'b', 5, 1],
    ] as const
    const ask = fc.record({
      limits: fc.subarray([...kinds], { minLength: 1 }),
      sender: fc.constantFrom('x', 'y'),
      /** Which of those that run ends before it. */
      ends: fc.option(fc.nat(9)),
    })
    let runs = 0
    const said = ({ refusedBy, counts }: Verdict) => ({
      by: refusedBy?.key,
      used: counts.map(({ used }) => used),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(ask, { minLength: 1, maxLength: 12 }), { maxLength: 4 }),
        async (turns) => {
          const memory = new MemoryLimitStore()
          const run = ++runs
          const running: Demand[] = []
          for (const turn of turns) {
            // A batch gives back before it decides.
            for (const { ends } of turn) {
              const [over] = ends === null ? [] : running.splice(ends, 1)
              if (!over) continue
              memory.release(over)
              store.release(over)
            }
            const demands = turn.map(({ limits, sender }) =>
              demand(
                limits.map(([kind, name, most, cost]) => limit(kind, `${name}${run}`, most, cost)),
                { sender: `${sender}${run}` },
              ),
            )
            const expected = demands.map((each) => memory.admit(each))
            const actual = await all(demands)
            // Of windows that began within a millisecond of each other either may be the longest.
            assert.deepEqual(
              actual.map((verdict) => ({ ...said(verdict), by: verdict.refusedBy !== undefined })),
              expected.map((verdict) => ({ ...said(verdict), by: verdict.refusedBy !== undefined })),
            )
            for (const [i, each] of demands.entries()) if (!expected[i]?.refusedBy) running.push(each)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('are asked again where Redis has forgotten the script', async () => {
    const rpm = limit('rpm', 's', 5)
    await all(many(2, [rpm]))
    await redis.script('FLUSH')
    const verdicts = await all(many(4, [rpm]))
    assert.deepEqual(
      verdicts.map(({ refusedBy }) => refusedBy === undefined),
      [true, true, true, false],
    )
  })

  for (const most of ['5', 5n, true] as unknown as number[]) {
    it(`do not fail for one of them whose limit is a ${typeof most} instead of a number`, async (t) => {
      const rpm = (req: Request) => (req.get('x-key') === 'odd' ? most : 5)
      const app = await limitedApp(t, {
        store,
        levels: [{ name: 'user', by: (req) => req.get('x-key'), rpm }],
      })
      const statuses = await Promise.all(
        ['ann', 'odd', 'bob', 'cay'].map(async (key) => (await app.ask({ key })).status),
      )
      assert.deepEqual(statuses, [200, 500, 200, 200])
      assert.equal(store.outages, 0)
      assert.equal(await redis.get('gateway:{limits}:rpm:user:ann'), '1')
    })
  }

  it('fail together, each as a store that is away, and give back together what they took unheard', async () => {
    store = new RedisLimitStore({ redis, logger: silent, timeoutMs: 1000 })
    const limits = [limit('rpm', 's', 100), limit('concurrency', 's', 100)]
    const running = many(3, limits)
    await all(running)
    server.pause()
    const late = many(5, limits)
    const results = await Promise.allSettled(late.map((each) => store.admit(each)))
    for (const result of results)
      assert.ok(result.status === 'rejected' && result.reason instanceof StoreAway)
    assert.equal(store.outages, 1)
    store.hold(late[0] as Demand)
    for (const each of late.slice(1)) store.release(each)
    store.release(running[0] as Demand)
    // While it is away one at a time tries.
    await assert.rejects(store.admit(demand(limits)), StoreAway)
    server.resume()
    await untilAsync(async () => {
      await store.ping().catch(() => {})
      const used = await redis.get('gateway:{limits}:rpm:key:s')
      return used === '4' && (await redis.zcard('gateway:{limits}:concurrency:key:s')) === 3
    })
    const left = [...running.slice(1), late[0] as Demand].map(({ id }) => id)
    assert.deepEqual(
      new Set(await redis.zrange('gateway:{limits}:concurrency:key:s', '0', '-1')),
      new Set(left),
    )
  })
})
