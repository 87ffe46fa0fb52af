import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import type { Demand } from '../../../lib/core/limit-store/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

describe('requests of one key at the same time', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  let store: RedisLimitStore
  before(async () => {
    server = await startRedis()
    redis = server.client()
    store = new RedisLimitStore({ redis, timeoutMs: 5000 })
  })
  after(() => server.close())

  /** Returns the demands that were admitted. */
  async function admitted(demands: readonly Demand[]): Promise<Demand[]> {
    const verdicts = await Promise.all(demands.map((each) => store.admit(each)))
    return demands.filter((_, i) => !verdicts[i]?.refusedBy)
  }

  it('share commands, and each one sees its own count', async () => {
    const sender = 'key:busy'
    const ask = () =>
      store.admit(demand([limit('rpm', 'busy', 1000), limit('concurrency', 'busy', 1000)], { sender }))
    await ask()
    const before = await commandsOf(redis)
    const verdicts = await Promise.all(Array.from({ length: 100 }, ask))
    const used = verdicts.map(({ counts }) => counts[0]?.used)
    assert.deepEqual(
      used.toSorted((one, other) => Number(one) - Number(other)),
      Array.from({ length: 100 }, (_, i) => i + 2),
    )
    const commands = (await commandsOf(redis)) - before
    assert.ok(commands <= 20, `${commands} commands for 100 requests`)
  })

  it('get as many points and slots as there are, and no more', async () => {
    const tokens = (cost: number) => demand([limit('tpm', 'points', 100, cost)])
    assert.equal((await admitted([60, 30, 10].map(tokens))).length, 3)
    const slots = Array.from({ length: 20 }, () => demand([limit('concurrency', 'slots', 7)]))
    const first = await admitted(slots)
    assert.equal(first.length, 7)
    await Promise.all(first.slice(0, 3).map((each) => store.release(each)))
    const others = Array.from({ length: 20 }, () => demand([limit('concurrency', 'slots', 7)]))
    assert.equal((await admitted(others)).length, 3)
  })

  it('have their own maxima', async () => {
    const small = limit('concurrency', 'maxima', 1)
    const large = limit('concurrency', 'maxima', 3)
    const asked = [small, small, large, small, large].map((each) => demand([each]))
    const got = await admitted(asked)
    assert.deepEqual(
      got.map((each) => asked.indexOf(each)),
      [0, 2, 4],
    )
  })
})

/** Returns how many scripts and single commands Redis has run so far. */
async function commandsOf(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats')
  const counts = stats.matchAll(/cmdstat_(?:evalsha|eval|get|zrem|multi):calls=(\d+)/g)
  return Array.from(counts, ([, calls]) => Number(calls)).reduce((sum, calls) => sum + calls, 0)
}
