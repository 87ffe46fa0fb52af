import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'

const LEASE = 60_000
const FAR = 1000 * 365 * 86_400_000

let store: MemoryIdempotencyStore
const own = { id: 'record', owner: 'own' }
const other = { id: 'record', owner: 'other' }

const claim = (who: typeof own, now: number) =>
  store.claim({ ...who, fingerprint: 'f', now, leaseUntil: now + LEASE })
const standing = (now: number) => claim({ id: 'record', owner: 'asks' }, now)

beforeEach(async () => {
  store = new MemoryIdempotencyStore()
  await claim(own, 0)
})

describe('a claim that is pinned', () => {
  it('does not end by itself, by a renewal, by a release or by pruning', async () => {
    assert.equal(store.pin(own), true)
    assert.deepEqual(await store.renew([own], LEASE), [true])
    await store.release(own)
    assert.equal(await store.prune(FAR, 10), 0)
    const { owner, state, fingerprint } = (await standing(FAR)) ?? {}
    assert.deepEqual([owner, state, fingerprint], ['own', 'running', 'f'])
    assert.equal(store.size, 1)
  })

  it('is freed for its own call, and for no other', async () => {
    store.pin(own)
    store.free(other)
    assert.equal((await standing(0))?.owner, 'own')
    store.free(own)
    assert.equal(store.size, 0)
    assert.equal(await standing(0), undefined)
  })

  it('is completed for as long as any other', async () => {
    store.pin(own)
    assert.equal(await store.complete(own, 1000), true)
    assert.equal((await standing(999))?.state, 'completed')
    assert.equal(await standing(1000), undefined)
  })
})

describe('a claim that is not pinned', () => {
  it('is renewed, released and pruned', async () => {
    assert.deepEqual(await store.renew([own], 2 * LEASE), [true])
    assert.equal((await standing(2 * LEASE - 1))?.owner, 'own')
    assert.equal(await store.prune(2 * LEASE - 1, 10), 0)
    assert.equal(await store.prune(2 * LEASE, 10), 1)
    assert.equal(store.size, 0)
    await claim(own, 0)
    await store.release(own)
    assert.equal(store.size, 0)
  })

  it('cannot be pinned once it is lost, over, or was never made', async () => {
    assert.equal(store.pin(other), false)
    assert.equal((await standing(LEASE - 1))?.expiresAt, LEASE, 'it is as it was')
    assert.equal(await claim(other, LEASE), undefined)
    assert.equal(store.pin(own), false)
    await store.complete(other, FAR)
    assert.equal(store.pin(other), false)
    assert.equal((await standing(0))?.state, 'completed')
    assert.equal(store.pin({ id: 'none', owner: 'own' }), false)
  })
})

describe('pruning', () => {
  it('forgets as many as it may, completed ones first, and says how many', async () => {
    for (const [i, id] of ['a', 'b', 'c'].entries()) {
      await store.claim({ id, owner: id, fingerprint: 'f', now: 0, leaseUntil: LEASE })
      await store.complete({ id, owner: id }, 1000 + i)
    }
    assert.equal(store.size, 4)
    assert.equal(await store.prune(1001, 1), 1)
    assert.equal(await store.prune(1001, 1), 1)
    assert.equal(await store.prune(1001, 1), 0)
    assert.equal(store.size, 2)
    assert.equal(await store.prune(LEASE, 0), 0)
    assert.equal(await store.prune(LEASE, 9), 2)
    assert.equal(store.size, 0)
  })

  it('forgets a running claim behind one that goes on', async () => {
    store.pin(own)
    await store.claim({ id: 'a', owner: 'a', fingerprint: 'f', now: 0, leaseUntil: LEASE })
    assert.equal(await store.prune(LEASE, 9), 1)
    assert.equal(store.size, 1)
    assert.equal((await standing(FAR))?.owner, 'own')
  })
})

it('a store that may keep no completed record is not made', () => {
  for (const maxCompleted of [0, 0.5, -1, Number.NaN])
    assert.throws(() => new MemoryIdempotencyStore({ maxCompleted }), /"maxCompleted" must be at least 1/)
  assert.doesNotThrow(() => new MemoryIdempotencyStore({ maxCompleted: 1 }))
})
