import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const NOW = 1_800_000_000_000
const LEASE_MS = 20_000
const PREFIX = 'gateway:{limits}:'

describe('what the limits keep in Redis', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  let store: RedisLimitStore
  let subjects = 0
  const cleanUp = cleaningUp()
  before(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client()
    const logger = recordingLogger()
    store = new RedisLimitStore({ redis, logger, timeoutMs: 5000, leaseMs: LEASE_MS, now: () => NOW })
  })

  /** A set that holds slots until so many milliseconds from now. */
  async function slots(most: number, ...ends: number[]) {
    const slot = limit('concurrency', `s${++subjects}`, most)
    for (const end of ends) await redis.zadd(PREFIX + slot.key, `${NOW + end}`, `${end}`)
    const ask = async () => (await store.admit(demand([slot]))).refusedBy === undefined
    /** When the slots end, in milliseconds from now. */
    const held = async () => {
      const all = await redis.zrangebyscore(PREFIX + slot.key, '-inf', '+inf', 'WITHSCORES')
      return all.flatMap((score, i) => (i % 2 === 1 ? [Number(score) - NOW] : []))
    }
    return { slot, key: PREFIX + slot.key, ask, held }
  }

  for (const used of ['1', '99999999999999', '100000000000001', '1234567890123456', '8999999999999999'])
    it(`counts on from ${used} exactly`, async () => {
      const rpm = limit('rpm', used, 9_000_000_000_000_000)
      await redis.set(PREFIX + rpm.key, used, 'PX', 50_000)
      assert.equal((await store.admit(demand([rpm]))).counts[0]?.used, Number(used) + 1)
      assert.equal(await redis.get(PREFIX + rpm.key), String(BigInt(used) + 1n))
    })

  it('cannot be counted on with more digits than a number has', async () => {
    const rpm = limit('rpm', 'too many', Number.MAX_SAFE_INTEGER)
    await redis.set(PREFIX + rpm.key, '1'.repeat(17), 'PX', 50_000)
    await assert.rejects(store.admit(demand([rpm])), StoreAway)
    assert.equal(await redis.get(PREFIX + rpm.key), '1'.repeat(17))
  })

  it('begins a window anew where a counter has no end', async () => {
    const rpm = limit('rpm', 'endless', 5)
    await redis.set(PREFIX + rpm.key, 5)
    const verdict = await store.admit(demand([rpm], { windowMs: 30_000 }))
    assert.deepEqual([verdict.refusedBy, verdict.counts], [undefined, [{ used: 1, resetMs: 30_000 }]])
    assert.equal(await redis.get(PREFIX + rpm.key), '1')
    const left = await redis.pttl(PREFIX + rpm.key)
    assert.ok(left > 28_000 && left <= 30_000, `${left} ms`)
  })

  it('shortens a window that seems longer than any, with the count it has', async () => {
    const rpm = limit('rpm', 'longer', 5)
    await redis.set(PREFIX + rpm.key, 3, 'PX', 90_000)
    const [one, other] = await Promise.all([0, 0].map(() => store.admit(demand([rpm]))))
    assert.deepEqual(
      [one?.counts, other?.counts],
      [[{ used: 4, resetMs: 60_000 }], [{ used: 5, resetMs: 60_000 }]],
    )
    const left = await redis.pttl(PREFIX + rpm.key)
    assert.ok(left > 58_000 && left <= 60_000, `${left} ms`)
    const refused = await store.admit(demand([rpm]))
    assert.ok(refused.waitMs > 58_000 && refused.waitMs <= 60_000)
  })

  it('frees a slot with the last millisecond of its lease', async () => {
    for (const [end, isFree] of [
      [-1, true],
      [0, true],
      [1, false],
    ] as const) {
      const { ask, held } = await slots(1, end)
      assert.equal(await ask(), isFree, `${end} ms`)
      assert.deepEqual(await held(), [isFree ? LEASE_MS : end])
    }
  })

  it('shortens a lease that seems longer than any may be, where a slot is missing', async () => {
    const { ask, held } = await slots(3, 29_999, 30_000, 30_001)
    assert.equal(await ask(), false)
    assert.deepEqual(await held(), [29_999, 30_000, 30_000])
  })

  it('leaves leases as they are while there are slots enough', async () => {
    const { ask, held } = await slots(3, 0, 90_000)
    assert.equal(await ask(), true)
    assert.deepEqual(await held(), [0, LEASE_MS, 90_000])
  })

  it('counts leases that are over once, whoever asks in a turn', async () => {
    const { ask, held } = await slots(3, -5, 0, 5)
    const answers = await Promise.all([ask(), ask(), ask(), ask()])
    assert.deepEqual(answers, [true, true, false, false])
    assert.deepEqual(await held(), [5, LEASE_MS, LEASE_MS])
  })

  it('admits a demand again that holds the slot already, and no other', async () => {
    const { slot, ask, held } = await slots(1)
    const once = demand([slot])
    const verdicts = await Promise.all([store.admit(once), store.admit(once), store.admit(demand([slot]))])
    assert.deepEqual(
      verdicts.map(({ refusedBy }) => refusedBy === undefined),
      [true, true, false],
    )
    assert.equal((await store.admit(once)).refusedBy, undefined)
    assert.equal(await ask(), false)
    assert.deepEqual(await held(), [LEASE_MS])
  })

  it('names the slot that is missing among several, and takes none of the others', async () => {
    const [full, free, counted] = [await slots(1, 5000), await slots(1), limit('rpm', 'beside slots', 5)]
    for (const limits of [
      [full.slot, free.slot],
      [free.slot, full.slot],
      [counted, free.slot, full.slot],
      [free.slot, full.slot, counted],
    ]) {
      const verdict = await store.admit(demand(limits))
      assert.deepEqual([verdict.refusedBy, verdict.waitMs], [full.slot, 1000])
    }
    assert.deepEqual([await free.held(), await full.held()], [[], [5000]])
    assert.equal(await redis.exists(PREFIX + counted.key), 0)
  })

  it('lives as long as the longest lease in it', async () => {
    for (const [before, after] of [
      [10_000, LEASE_MS],
      [28_000, 28_000],
    ] as const) {
      const { key, ask } = await slots(9, 5000)
      await redis.pexpire(key, before)
      assert.equal(await ask(), true)
      const left = await redis.pttl(key)
      assert.ok(left > after - 2000 && left <= after, `${left} ms after ${before}`)
    }
  })
})
