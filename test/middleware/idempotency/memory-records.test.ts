import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'

let store: MemoryIdempotencyStore
beforeEach(() => {
  store = new MemoryIdempotencyStore()
})

const of = (id: string, owner = id) => ({ id, owner })
const claim = (id: string, { owner = id, now = 0, leaseUntil = 1000 } = {}) =>
  store.claim({ id, owner, fingerprint: 'f', now, leaseUntil })
/** The owner, state, end and answer of the record that a later call finds, without a change to it; else undefined. */
const found = async (id: string, now = 0) => {
  const record = await claim(id, { owner: 'looker', now, leaseUntil: now + 1 })
  if (!record) store.free(of(id, 'looker'))
  return record && [record.owner, record.state, record.expiresAt, record.answer]
}

describe('a record in memory', () => {
  it('is made once, and again by its own call', async () => {
    assert.equal(await claim('a'), undefined)
    assert.deepEqual(await claim('a', { owner: 'b' }), {
      owner: 'a',
      fingerprint: 'f',
      state: 'running',
      expiresAt: 1000,
    })
    assert.equal(await claim('a', { leaseUntil: 2000 }), undefined)
    assert.deepEqual(await found('a', 1500), ['a', 'running', 2000, undefined])
    assert.equal(store.size, 1)
    await store.complete(of('a'), 5000)
    assert.deepEqual(await found('a'), ['a', 'completed', 5000, undefined])
    assert.deepEqual(
      (await claim('a'))?.state,
      'completed',
      'one that has run is not made again by its own call',
    )
  })

  it('holds its key until it ends, and not at that moment any more', async () => {
    await claim('a')
    assert.deepEqual(await found('a', 999), ['a', 'running', 1000, undefined])
    assert.equal(await found('a', 1000), undefined)
    await claim('b')
    await store.complete(of('b'), 3000, 'answer')
    assert.deepEqual(await found('b', 2999), ['b', 'completed', 3000, 'answer'])
    assert.equal(await claim('b', { owner: 'c', now: 3000, leaseUntil: 4000 }), undefined)
    assert.deepEqual(
      await found('b', 3000),
      ['c', 'running', 4000, undefined],
      'without the answer of another',
    )
    assert.equal(store.size, 1)
  })

  it('is renewed, completed, released and freed by its own call only', async () => {
    await claim('a')
    assert.deepEqual(await store.renew([of('a', 'x'), of('a'), of('none')], 2000), [false, true, false])
    assert.deepEqual(await found('a'), ['a', 'running', 2000, undefined])
    assert.equal(await store.complete(of('a', 'x'), 5000), false)
    assert.equal(await store.complete(of('none'), 5000), false)
    await store.release(of('a', 'x'))
    store.free(of('a', 'x'))
    assert.equal(store.pin(of('a', 'x')), false)
    assert.deepEqual(await found('a'), ['a', 'running', 2000, undefined])
    await store.release(of('a'))
    assert.equal(await found('a'), undefined)
    assert.equal(store.size, 0)
  })

  it('that is completed stays so when it is renewed, released or freed', async () => {
    await claim('a')
    assert.equal(await store.complete(of('a'), 5000, 'one'), true)
    assert.deepEqual(await store.renew([of('a')], 9000), [false])
    await store.release(of('a'))
    store.free(of('a'))
    assert.equal(store.pin(of('a')), false)
    assert.deepEqual(await found('a'), ['a', 'completed', 5000, 'one'])
    assert.equal(await store.complete(of('a', 'x'), 6000, 'other'), false)
    assert.equal(await store.complete(of('a'), 6000), true, 'the second time returns the same')
    assert.deepEqual(await found('a'), ['a', 'completed', 6000, 'one'])
  })

  it('that is pinned does not end, until it is freed or completed', async () => {
    await claim('a')
    await claim('b')
    assert.deepEqual([store.pin(of('a')), store.pin(of('b')), store.pin(of('none'))], [true, true, false])
    const later = Date.UTC(9998, 0)
    assert.deepEqual(await store.renew([of('a')], 2000), [true])
    await store.release(of('a'))
    assert.equal((await found('a', later))?.[0], 'a')
    store.free(of('a'))
    assert.equal(await found('a'), undefined)
    assert.equal(await store.complete(of('b'), 5000), true)
    assert.deepEqual(await found('b'), ['b', 'completed', 5000, undefined])
  })
})

describe('the bounds of a store in memory', () => {
  const complete = async (id: string, answer?: string, keepUntil = 5000) => {
    await claim(id)
    assert.equal(await store.complete(of(id), keepUntil, answer), true)
  }
  const answers = async (...ids: string[]) => Promise.all(ids.map(async (id) => (await found(id))?.[3]))

  it('keep so many characters of answers, and drop the oldest first', async () => {
    store = new MemoryIdempotencyStore({ maxAnswerLength: 10 })
    await complete('a', '12345')
    await complete('b', '12345')
    assert.deepEqual(await answers('a', 'b'), ['12345', '12345'])
    await complete('c', '1')
    assert.deepEqual(await answers('a', 'b', 'c'), [undefined, '12345', '1'])
    assert.equal((await found('a'))?.[1], 'completed', 'its key stays used up')
    await complete('d', '1234567890')
    assert.deepEqual(await answers('b', 'c', 'd'), [undefined, undefined, '1234567890'])
    await complete('e', '12345678901')
    assert.deepEqual(await answers('d', 'e'), [undefined, undefined])
    await complete('f', '1234567890')
    assert.deepEqual(await answers('f'), ['1234567890'])
  })

  it('count an answer no longer that was replaced, or whose record is over', async () => {
    store = new MemoryIdempotencyStore({ maxAnswerLength: 10 })
    await complete('a', '12345')
    for (let i = 0; i < 5; i++) assert.equal(await store.complete(of('a'), 5000, '1234567'), true)
    await complete('b', '123')
    assert.deepEqual(await answers('a', 'b'), ['1234567', '123'])
    assert.equal(await store.prune(5000, 100), 2)
    for (const id of ['c', 'd']) await complete(id, '12345')
    assert.deepEqual(await answers('c', 'd'), ['12345', '12345'])
    await claim('c', { owner: 'x', now: 5000, leaseUntil: 6000 })
    await complete('e', '12345')
    assert.deepEqual(await answers('d', 'e'), ['12345', '12345'])
  })

  it('keep so many completed records, with their answers, and any number of running ones', async () => {
    store = new MemoryIdempotencyStore({ maxCompleted: 2, maxAnswerLength: 10 })
    for (const id of ['r', 's', 't']) await claim(id)
    for (const id of ['a', 'b', 'c']) await complete(id, '12345')
    assert.equal(store.size, 5)
    assert.equal(await found('a'), undefined)
    assert.deepEqual(await answers('b', 'c'), ['12345', '12345'])
  })

  it('are 64 Mi characters of answers by default', async () => {
    const answer = 'x'.repeat(16 * 1024 * 1024)
    for (const id of ['a', 'b', 'c', 'd']) await complete(id, answer)
    assert.deepEqual(
      (await answers('a', 'd')).map((text) => String(text).length),
      [answer.length, answer.length],
    )
    await complete('e', 'x')
    assert.deepEqual(await answers('a', 'e'), [undefined, 'x'])
  })

  it('must be numbers that can be', () => {
    for (const [name, value] of [
      ['maxCompleted', 0.5],
      ['maxCompleted', Number.NaN],
      ['maxAnswerLength', -1],
      ['maxAnswerLength', '1'],
    ] as const)
      assert.throws(() => new MemoryIdempotencyStore({ [name]: value }), {
        name: 'TypeError',
        message: new RegExp(`^MemoryIdempotencyStore: "${name}"`),
      })
    assert.doesNotThrow(() => new MemoryIdempotencyStore({ maxCompleted: 1, maxAnswerLength: 0 }))
  })

  it('forget what is over, so many at a time, completed records first', async () => {
    for (const [id, until] of Object.entries({ a: 100, b: 200, c: 900 })) await complete(id, 'x', until)
    for (const [id, leaseUntil] of Object.entries({ r: 900, s: 100, t: 200 })) await claim(id, { leaseUntil })
    assert.equal(await store.prune(99, 10), 0)
    assert.equal(store.size, 6)
    assert.equal(await store.prune(100, 0), 0)
    assert.equal(await store.prune(100, 1), 1)
    assert.deepEqual([await found('a', 0), (await found('s', 0))?.[0]], [undefined, 's'])
    assert.equal(await store.prune(200, 2), 2)
    assert.equal(await store.prune(200, 10), 1)
    assert.equal(await store.prune(200, 10), 0)
    assert.deepEqual([store.size, (await found('c'))?.[0], (await found('r'))?.[0]], [2, 'c', 'r'])
  })
})
