import assert from 'node:assert/strict'
import { it } from 'node:test'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { until, untilAsync } from '../../support/until.ts'

const TIMEOUT_MS = 150
const LEASE_MS = 30_000

it('a slot that Redis grants after its call has released it is given back, long before its lease ends', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const server = await startRedis()
  t.after(() => server.close())
  const redis = server.client()
  const store = new RedisLimitStore({ redis, timeoutMs: TIMEOUT_MS, slotLeaseMs: LEASE_MS })
  t.after(() => store.close())
  // A cluster repeats commands, so that one can reach a node late.
  const commands = redis as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
  const take = commands.gatewayTakeSlots as (typeof commands)[string]
  const granted: unknown[] = []
  const released = Promise.withResolvers<void>()
  commands.gatewayTakeSlots = async (...args) => {
    await released.promise
    const answer = await take.apply(redis, args)
    granted.push(answer)
    return answer
  }
  const late = demand([limit('concurrency', 'late', 1)])
  const asking = store.admit(late)
  asking.catch(() => {})
  // Redis answers others, so that it does not count as away.
  await store.admit(demand([limit('rpm', 'other', 10)]))
  await assert.rejects(asking, StoreAway)
  await store.release(late)
  released.resolve()
  await until(() => granted.length > 0, 'the late answer')
  commands.gatewayTakeSlots = take
  assert.deepEqual(granted[0], [1])

  const next = demand([limit('concurrency', 'late', 1)])
  const askedAt = performance.now()
  await untilAsync(async () => {
    const verdict = await store.admit(next).catch(() => undefined)
    return verdict !== undefined && verdict.refusedBy === undefined
  }, 'the slot')
  assert.ok(performance.now() - askedAt < LEASE_MS / 2)
  await store.release(next)
})
