import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { MemoryLimitStore } from '../../../lib/middleware/rate-limit/index.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { demand, limit } from './demands.ts'
import { LEASE_MS, RedisClock } from './redis-clock.ts'

const HOUR_MS = 3_600_000

it('a clock that is set back locks nobody out: memory', (t) => {
  const start = Date.now()
  mock.timers.enable({ apis: ['Date'], now: start })
  t.after(() => mock.timers.reset())
  const store = new MemoryLimitStore()
  const ask = () => store.admit(demand([limit('rpm', 's', 1)], { sender: 's', windowMs: 1500 }))
  ask()
  ask()
  mock.timers.setTime(start + 1200)
  ask()
  assert.equal(ask().waitMs, 1500 + 2000 - 1200, 'the wait is prolonged')
  mock.timers.reset()
  mock.timers.enable({ apis: ['Date'], now: start - HOUR_MS })
  const refused = ask()
  assert.deepEqual([refused.waitMs, refused.counts[0]?.resetMs], [1500, 1500])
  mock.timers.setTime(start - HOUR_MS + 1500)
  assert.equal(ask().refusedBy, undefined)
})

it('a clock that is set back locks nobody out: Redis', { skip: WITHOUT_REDIS }, async (t) => {
  const clock = new RedisClock(await startRedis())
  t.after(() => clock.close())
  const { store } = clock.open()
  const ask = () => store.admit(demand([limit('rpm', 's', 1)], { sender: 's' }))
  await ask()
  await ask()
  await clock.advance(2000)
  await ask()
  assert.ok((await ask()).waitMs > 59_000, 'the wait is prolonged')
  await clock.advance(-HOUR_MS)
  const refused = await ask()
  assert.deepEqual([refused.waitMs, refused.counts[0]?.resetMs], [60_000, 60_000])
  await clock.advance(60_000)
  assert.equal((await ask()).refusedBy, undefined)
})

it('a clock that is set back gives the slots of a killed process back in time, and takes no other: Redis', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const clock = new RedisClock(await startRedis())
  t.after(() => clock.close())
  const [killed, running] = [clock.open(), clock.open()]
  const slots = [limit('concurrency', 's', 3)]
  const ask = async () => (await running.store.admit(demand(slots))).refusedBy === undefined
  await killed.store.admit(demand(slots))
  await killed.store.admit(demand(slots))
  killed.crash()
  assert.equal(await ask(), true)
  await clock.advance(-HOUR_MS)
  assert.equal(await ask(), false, 'all may still run')
  for (let passed = 0; passed <= LEASE_MS; passed += LEASE_MS / 3) {
    await clock.advance(LEASE_MS / 3)
    await clock.renew()
  }
  assert.deepEqual([await ask(), await ask(), await ask()], [true, true, false], 'one runs on')
})
