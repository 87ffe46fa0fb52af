import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import type { LineNote } from '../../../lib/middleware/route/index.ts'
import { RedisLineStateStore } from '../../../lib/stores/redis/index.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const HOUR_MS = 3_600_000
const KEY = 'gateway:{lines}:standing'

/** A Redis of the test's own, and the stores of processes in it. */
async function started(t: TestContext) {
  const server = await startRedis()
  t.after(() => server.close())
  const another = () => new RedisLineStateStore({ redis: server.client() })
  return { redis: server.client(), store: another(), another }
}

it('notes from before the clock of Redis was set back have no effect, and keep no other from its place', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const { redis, store: running, another } = await started(t)
  const killed = another()
  const conditions = ['longer', 'unchanged'] as const
  const notes = (value: string): LineNote[] =>
    conditions.map((when) => ({ id: `of ${when}`, value, lifeMs: 3000, when }))
  const allOf = (value: string) => Object.fromEntries(conditions.map((when) => [`of ${when}`, value]))
  const values = (standing: ReadonlyMap<string, { value: string }>) =>
    Object.fromEntries([...standing].map(([id, { value }]) => [id, value]))

  assert.deepEqual(values(await killed.exchange(notes('2000 before'))), allOf('2000 before'))
  assert.deepEqual(values(await running.exchange([])), allOf('2000 before'))
  for (const [id, text] of Object.entries(await redis.hgetall(KEY)))
    await redis.hset(
      KEY,
      id,
      text.replaceAll(/\b\d{13}\b/g, (time) => String(Number(time) + HOUR_MS)),
    )

  assert.deepEqual(values(await running.exchange([])), {})
  const standing = await running.exchange(notes('2000 after'))
  assert.deepEqual(values(standing), allOf('2000 after'))
  for (const { leftMs } of standing.values()) assert.ok(leftMs > 2000 && leftMs <= 3000, `${leftMs} ms`)
})

it('a note in the form of another version, or in no known form, has no effect', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const { redis, store } = await started(t)
  const later = Date.now() + HOUR_MS
  const foreign = [
    '',
    'x',
    `${later}`,
    `${later} value`,
    ` ${later} 1 value`,
    `-1 1 value`,
    `${later} ${later} value`,
  ]
  for (const [i, text] of foreign.entries()) await redis.hset(KEY, `${i}`, text)
  const given = foreign.map((_, i): LineNote => ({ id: `${i}`, value: 'own', lifeMs: 1000, when: 'longer' }))
  assert.equal((await store.exchange([])).size, 0)
  assert.equal((await store.exchange(given)).size, foreign.length)
})

it('notes of versions that have another form are left alone, and none is left where they read', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const { redis, store } = await started(t)
  const older = { a: `${Date.now() + HOUR_MS} 2000 process-1 1` }
  await redis.hset('gateway:{lines}:notes', older)
  const standing = await store.exchange([
    { id: 'b', value: '2000 process-2 1', lifeMs: 1000, when: 'longer' },
  ])
  assert.deepEqual([...standing.keys()], ['b'])
  assert.deepEqual(await redis.hgetall('gateway:{lines}:notes'), older)
})

it('a note of one process to the others is forgotten an hour after the last of it, however often it is read', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const { redis, store } = await started(t)
  await store.exchange([{ id: 'a', value: 'v', lifeMs: HOUR_MS, when: 'longer' }])
  const isHour = (left: number) => left > HOUR_MS - 5000 && left <= HOUR_MS
  assert.ok(isHour(await redis.pttl(KEY)))
  await redis.pexpire(KEY, 60_000)
  assert.equal((await store.exchange([])).size, 1)
  assert.ok((await redis.pttl(KEY)) <= 60_000)
  await store.exchange([{ id: 'b', value: 'v', lifeMs: 1000, when: 'longer' }])
  assert.ok(isHour(await redis.pttl(KEY)))
})

it('a note stands where the clock of the Redis that wrote it is half a second ahead', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const { redis, store } = await started(t)
  const now = Date.now()
  await redis.hset(KEY, 'a', `${now + HOUR_MS} ${now + 500} v`)
  assert.deepEqual([...(await store.exchange([])).keys()], ['a'])
})
