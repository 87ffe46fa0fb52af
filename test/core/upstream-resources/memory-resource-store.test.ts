import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { MemoryResourceStore } from '../../../lib/core/upstream-resources/index.ts'
import { resourceStoreContract } from '../../contracts/resource-store.ts'

resourceStoreContract('memory', async () => {
  const store = new MemoryResourceStore()
  return { stores: [store, store], close: async () => {} }
})

describe('resources in memory', () => {
  it('are limited in number: the oldest are dropped', async () => {
    const store = new MemoryResourceStore({ maxResources: 2 })
    const thing = {
      kind: 'file',
      account: 'acme',
      key: null,
      line: 'line-0',
      model: null,
      tokens: 0,
      createdAt: 1,
    }
    for (const id of ['a', 'b', 'c']) await store.remember([{ ...thing, id, expiresAt: null }])
    const names = ['a', 'b', 'c'].map((id) => ({ kind: 'file', id }))
    const found = await store.find('acme', names)
    assert.deepEqual(
      found.map(({ id }) => id),
      ['b', 'c'],
    )
  })

  it('are listed exactly if they can be found by name, after any records, deletions and drops', async () => {
    const name = { account: fc.constantFrom('one', 'two'), kind: fc.constantFrom('file', 'batch') }
    const step = fc.record({
      ...name,
      id: fc.constantFrom('a', 'b', 'c'),
      line: fc.constantFrom('l', 'm'),
      act: fc.constantFrom('remember', 'remember', 'remember', 'forget', 'prune'),
      expiresAt: fc.constantFrom(null, 5),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.integer({ min: 1, max: 7 }),
        async (steps, maxResources) => {
          const store = new MemoryResourceStore({ maxResources })
          for (const { act, ...thing } of steps) {
            if (act === 'remember')
              await store.remember([{ ...thing, key: null, model: null, tokens: 0, createdAt: 1 }])
            else if (act === 'forget') await store.forget(thing.account, thing)
            else await store.prune(6, 1)
          }
          let all = 0
          for (const account of ['one', 'two'])
            for (const kind of ['file', 'batch']) {
              const names = ['a', 'b', 'c'].map((id) => ({ kind, id }))
              const page = { lines: ['l', 'm'], order: 'oldest', aliveAt: 0, limit: 9 } as const
              const listed = await store.list(account, kind, page)
              assert.deepEqual(listed, await store.find(account, names))
              all += listed.length
            }
          assert.ok(all <= 2 * maxResources)
        },
      ),
      { numRuns: 150 },
    )
  })

  it('are 100,000 by default', async () => {
    const store = new MemoryResourceStore()
    const thing = (i: number) => ({
      ...{ kind: 'file', id: `${i}`, account: 'acme', key: null, line: 'l', model: null, tokens: 0 },
      ...{ createdAt: 1, expiresAt: null },
    })
    await store.remember(Array.from({ length: 100_000 }, (_, i) => thing(i)))
    const isThere = async (i: number) => (await store.find('acme', [thing(i)])).length === 1
    assert.equal(await isThere(0), true)
    await store.remember([thing(100_000)])
    assert.deepEqual(await Promise.all([0, 1, 100_000].map(isThere)), [false, true, true])
  })

  it('cannot have an invalid limit', () => {
    assert.throws(() => new MemoryResourceStore({ maxResources: 0 }), /MemoryResourceStore: "maxResources"/)
    assert.doesNotThrow(() => new MemoryResourceStore({ maxResources: 1 }))
  })

  it('are sorted by time also if they arrive out of order', async () => {
    const store = new MemoryResourceStore()
    const thing = (id: string, createdAt: number) => ({
      ...{ kind: 'file', id, account: 'acme', key: null, line: 'l', model: null, tokens: 0 },
      ...{ createdAt, expiresAt: null },
    })
    await store.remember([thing('b', 2), thing('c', 2), thing('a', 2), thing('z', 1), thing('y', 3)])
    const ids = async (page: object) => {
      const all = { lines: ['l'], order: 'oldest' as const, aliveAt: 0, limit: 9, ...page }
      return (await store.list('acme', 'file', all)).map(({ id }) => id).join('')
    }
    assert.equal(await ids({}), 'zabcy')
    assert.equal(await ids({ order: 'newest' }), 'ycbaz')
    assert.equal(await ids({ after: { createdAt: 2, id: 'b' } }), 'cy')
    assert.equal(await ids({ after: { createdAt: 2, id: 'b' }, order: 'newest' }), 'az')
    assert.equal(await ids({ after: { createdAt: 2, id: 'b' }, limit: 1 }), 'c')
    assert.equal(await ids({ lines: [] }), '')
  })

  it('are deleted if they expired before a time, a limited number at once', async () => {
    const store = new MemoryResourceStore()
    const thing = (id: string, account: string, expiresAt: number | null) => ({
      ...{ kind: 'file', id, account, key: null, line: account, model: null, tokens: 0, createdAt: 1 },
      expiresAt,
    })
    await store.remember([
      thing('a', 'one', 4),
      thing('a', 'two', 5),
      thing('b', 'one', null),
      thing('c', 'one', 1),
      thing('d', 'one', 2),
    ])
    const left = async () => {
      const found = await Promise.all(
        ['one', 'two'].map((account) =>
          store.find(
            account,
            ['a', 'b', 'c', 'd'].map((id) => ({ kind: 'file', id })),
          ),
        ),
      )
      return found.map((things) => things.map(({ id }) => id).join(''))
    }
    assert.equal(await store.prune(5, 2), 2)
    assert.deepEqual(await left(), ['bd', 'a'])
    assert.equal(await store.prune(5, 2), 1)
    assert.equal(await store.prune(5, 2), 0)
    assert.deepEqual(await left(), ['b', 'a'])
  })
})
