import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type CallLogEntry, MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { callStoreContract, entryAt } from '../../contracts/call-store.ts'

callStoreContract('memory', async () => ({ store: new MemoryCallStore(), close: async () => {} }))

it('the memory store drops the oldest arrivals when it is full, whatever the clock says, and lists entries by time', async () => {
  const steps = fc.array(fc.record({ by: fc.integer({ min: -50, max: 50 }), prune: fc.boolean() }), {
    minLength: 20,
    maxLength: 60,
    size: 'max',
  })
  await fc.assert(
    fc.asyncProperty(steps, async (times) => {
      const store = new MemoryCallStore({ maxEntries: 10 })
      let kept: CallLogEntry[] = []
      let now = 1_700_000_000_000
      for (const { by, prune } of times) {
        now += by
        const entry = entryAt(now)
        kept = [...kept, entry].slice(-10)
        await store.append([entry])
        if (prune && by > 0) {
          const old = kept.filter(({ created_at }) => Date.parse(created_at) < now - 40)
          kept = kept.filter((one) => !old.includes(one))
          assert.equal(await store.prune(now - 40, 99), old.length)
        }
        const listed = kept.toSorted((a, b) => (a.id < b.id ? 1 : -1))
        assert.deepEqual((await store.list({ limit: 100 })).entries, listed)
        const [first, ...others] = listed
        assert.deepEqual((await store.list({ limit: 100, before: first?.id ?? '' })).entries, others)
      }
      for (const entry of kept) assert.deepEqual(await store.find(entry.id), entry)
    }),
  )
})

it('the memory store has each entry once and in its place, even if it arrives late', async () => {
  for (let length = 1; length <= 12; length++) {
    const entries = Array.from({ length }, (_, i) => entryAt(1_700_000_000_000 + i))
    for (const late of entries) {
      const store = new MemoryCallStore()
      await store.append([...entries.filter((entry) => entry !== late), late, ...entries])
      assert.deepEqual((await store.list({ limit: 100 })).entries, entries.toReversed())
    }
  }
})

it('the memory store refuses an invalid size', () => {
  assert.throws(() => new MemoryCallStore({ maxEntries: 0 }), /maxEntries/)
})

it('the memory store keeps up to 1000 changes of entries that have not arrived yet', async () => {
  const store = new MemoryCallStore()
  const entries = Array.from({ length: 1001 }, (_, i) => entryAt(1_700_000_000_000 + i))
  for (const { id } of entries) store.amend(id, (entry) => ({ ...entry, model: 'changed' }))
  await store.append(entries)
  const models = await Promise.all(entries.map(async ({ id }) => (await store.find(id))?.model))
  assert.notEqual(models[0], 'changed')
  assert.deepEqual(new Set(models.slice(1)), new Set(['changed']))
  const [first] = entries
  assert.ok(first)
  store.amend(first.id, (entry) => ({ ...entry, model: 'later' }))
  assert.equal((await store.find(first.id))?.model, 'later')
  // A change is made once.
  await store.append([entryAt(1_700_000_000_000)])
  assert.equal((await store.find(first.id))?.model, 'later')
})

it('the memory store counts each entry once, as it came', async () => {
  const counted: unknown[] = []
  const store = new MemoryCallStore({ usage: { count: ({ id, model }) => void counted.push([id, model]) } })
  const [one, other] = [entryAt(1_700_000_000_001), entryAt(1_700_000_000_000)]
  store.amend(one.id, (entry) => ({ ...entry, model: 'changed' }))
  await store.append([one, other, one])
  await store.append([other])
  assert.deepEqual(counted, [
    [one.id, one.model],
    [other.id, other.model],
  ])
})

it('the memory store accepts filters by times that no entry can have', async () => {
  const store = new MemoryCallStore()
  await store.append([entryAt(0), entryAt(1_700_000_000_000)])
  const found = async (query: object) => (await store.list({ limit: 9, ...query })).entries.length
  assert.deepEqual(
    await Promise.all(
      [{ from: -1 }, { to: -1 }, { from: 1e15 }, { to: 1e15 }, { from: 0, to: 1 }].map(found),
    ),
    [2, 0, 0, 2, 1],
  )
  assert.equal(await store.prune(-1, 9), 0)
  assert.equal(await store.prune(1e15, 1), 1)
  assert.deepEqual([await found({}), await store.prune(1e15, 9), await found({})], [1, 1, 0])
})

describe('accounts that share a call store in memory', () => {
  it('lose entries only to their own', async () => {
    const store = new MemoryCallStore({ maxEntries: 100 })
    const ids = async (account: string) =>
      (await store.list({ account, limit: 200 })).entries.map(({ id }) => id)
    const quiet = Array.from({ length: 10 }, (_, i) => entryAt(1000 + i, { account: 'quiet' }))
    const loud = Array.from({ length: 1000 }, (_, i) => entryAt(2000 + i, { account: 'loud' }))
    await store.append(quiet)
    await store.append(loud)
    assert.deepEqual(await ids('quiet'), quiet.map(({ id }) => id).reverse())
    assert.deepEqual(
      await ids('loud'),
      loud
        .slice(-90)
        .map(({ id }) => id)
        .reverse(),
    )
    assert.equal(await store.prune(1005, 99), 5)
    assert.equal((await ids('quiet')).length, 5)
  })
})
