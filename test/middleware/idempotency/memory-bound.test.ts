import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'

it('a store in memory keeps the records completed last, however many came before', async () => {
  const store = new MemoryIdempotencyStore({ maxCompleted: 3 })
  const claim = (id: string, now = 0) =>
    store.claim({ id, owner: id, fingerprint: 'same', now, leaseUntil: now + 1000 })
  const complete = async (id: string, keepUntil = 10_000) => {
    assert.equal(await claim(id), undefined)
    assert.equal(await store.complete({ id, owner: id }, keepUntil), true)
  }
  const kept = async (ids: readonly string[]) => {
    const standing = await Promise.all(ids.map((id) => store.claim({ ...other, id })))
    return ids.filter((_, i) => standing[i] !== undefined)
  }
  for (let i = 0; i < 100; i++) await complete(`many-${i}`)
  assert.equal(store.size, 3)

  await complete('pushed')
  await complete('short', 100)
  await complete('last')
  assert.equal(await claim('short', 200), undefined, 'one whose time is over is claimed anew')
  assert.equal(await store.complete({ id: 'short', owner: 'short' }, 10_000), true)
  await complete('next')
  assert.deepEqual(await kept(['many-99', 'pushed', 'short', 'last', 'next']), ['short', 'last', 'next'])
})

const other = { owner: 'other', fingerprint: 'same', now: 300, leaseUntil: 1300 }

it('a store in memory drops the records and answers of the scope that has the most', async () => {
  const store = new MemoryIdempotencyStore({ maxCompleted: 10, maxAnswerLength: 100 })
  const complete = async (scope: string, id: string) => {
    const times = { now: 0, leaseUntil: 1000 }
    assert.equal(await store.claim({ id, owner: id, scope, fingerprint: 'same', ...times }), undefined)
    assert.equal(await store.complete({ id, owner: id }, 10_000, 'x'.repeat(20)), true)
  }
  await complete('quiet', 'quiet')
  for (let i = 0; i < 50; i++) await complete('loud', `loud-${i}`)
  assert.equal(store.size, 10)
  const found = await store.claim({ ...other, id: 'quiet' })
  assert.deepEqual([found?.state, found?.answer?.length], ['completed', 20])
})
