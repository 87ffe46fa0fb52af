import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { DeletedResources } from '../../../lib/core/upstream-resources/deleted-resources.ts'
import {
  MemoryResourceStore,
  ownResource,
  plainId,
  type UpstreamResource,
  UpstreamResources,
} from '../../../lib/core/upstream-resources/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const thing = (id: string, members: Partial<UpstreamResource> = {}): UpstreamResource => ({
  ...{ kind: 'file', id, account: 'acme', key: null, line: 'l', model: null, tokens: 0, createdAt: 1 },
  expiresAt: null,
  ...members,
})

function clock(t: TestContext): { ms: number } {
  const time = { ms: 1_000_000 }
  t.mock.method(performance, 'now', () => time.ms)
  return time
}

describe('resources that are gone', () => {
  it('are remembered for ten minutes from the last report', (t) => {
    const time = clock(t)
    const gone = new DeletedResources()
    const first = thing('a')
    gone.add(first)
    time.ms += 599_999
    assert.equal(gone.find(thing('a', { line: 'other' })), first)
    const again = thing('a', { line: 'm' })
    gone.add(again)
    time.ms += 599_999
    assert.equal(gone.find(first), again)
    time.ms += 1
    assert.equal(gone.find(first), undefined)
  })

  it('belong to one account, kind and id, until they are back', () => {
    const gone = new DeletedResources()
    gone.add(thing('a'))
    for (const other of [{ account: 'globex' }, { kind: 'batch' }, { id: 'b' }])
      assert.equal(gone.find(thing('a', other)), undefined)
    gone.delete(thing('a', { account: 'globex' }))
    assert.ok(gone.find(thing('a')))
    gone.delete(thing('a'))
    assert.equal(gone.find(thing('a')), undefined)
  })

  it('are ten thousand at most, of which the oldest are forgotten', () => {
    const gone = new DeletedResources()
    for (let i = 0; i < 10_000; i++) gone.add(thing(`${i}`))
    gone.add(thing('0'))
    assert.ok(gone.find(thing('0')) && gone.find(thing('1')))
    gone.add(thing('one more'))
    assert.deepEqual(
      ['0', '1', '2', 'one more'].map((id) => gone.find(thing(id)) !== undefined),
      [true, false, true, true],
    )
  })
})

describe('the record of a resource', () => {
  const rows: [name: string, records: UpstreamResource[], line: string | undefined][] = [
    ['of nobody', [], undefined],
    ['of another account', [thing('a', { account: 'globex' })], undefined],
    ['of the account', [thing('a')], 'l'],
    [
      'that another account has on another line',
      [thing('a', { account: 'globex', line: 'm' }), thing('a')],
      'l',
    ],
    ['that two accounts have on one line', [thing('a'), thing('a', { account: 'globex' })], undefined],
  ]
  for (const [name, records, line] of rows)
    it(`is the account’s own, unless one line has two of that name: ${name}`, () => {
      assert.equal(ownResource(records, 'acme')?.line, line)
    })

  const ids: [id: string, plain: string][] = [
    ['file-1', 'file-1'],
    ['cachedContents/abc', 'abc'],
    ['files/abc', 'abc'],
    ['https://host/v1beta/files/abc', 'abc'],
    ['https://host/v1/cachedContents/abc', 'abc'],
    ['/files/abc', '/files/abc'],
    ['other/abc', 'other/abc'],
    ['myfiles/abc', 'myfiles/abc'],
    ['files/abc/def', 'files/abc/def'],
    ['files/abc?alt=media', 'files/abc?alt=media'],
    ['files/', 'files/'],
    ...[
      'https://host/v1beta/files/other?/v1beta/files/abc',
      'https://host/v1beta/files/other#/v1beta/files/abc',
      'https://host/v1beta/files/other/v1beta/files/abc',
      'https://host\\v1beta\\files\\other/v1beta/files/abc',
    ].map((url): [string, string] => [url, url]),
  ]
  for (const [id, plain] of ids) it(`has the id alone: ${id}`, () => assert.equal(plainId(id), plain))
})

describe('resources that have expired', () => {
  /** How many are left, round by round. */
  async function left(
    t: TestContext,
    store: MemoryResourceStore,
    waitsMs: readonly number[],
  ): Promise<number[]> {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const resources = new UpstreamResources({ store, logger: recordingLogger() })
    t.after(() => resources.close())
    const counts: number[] = []
    for (const ms of waitsMs) {
      t.mock.timers.tick(ms)
      for (let turn = 0; turn < 1200; turn++) await Promise.resolve()
      const page = { lines: ['l'], order: 'oldest', aliveAt: 0, limit: 10_000 } as const
      counts.push((await store.list('acme', 'file', page)).length)
    }
    return counts
  }

  it('are deleted every ten minutes, in batches, and no others are', async (t) => {
    const store = new MemoryResourceStore()
    const expired = Array.from({ length: 600 }, (_, i) => thing(`${i}`, { expiresAt: Date.now() - 1 }))
    await store.remember([...expired, thing('kept'), thing('later', { expiresAt: Date.now() + 3_600_000 })])
    assert.deepEqual(await left(t, store, [599_999, 1, 49, 1, 50]), [602, 102, 102, 2, 2])
    await store.remember([thing('late', { expiresAt: 1 })])
    t.mock.timers.tick(599_949)
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    assert.equal((await store.find('acme', [thing('late')])).length, 1)
    t.mock.timers.tick(1)
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    assert.equal((await store.find('acme', [thing('late')])).length, 0)
  })

  it('are deleted after the store was away once, but not after close', async (t) => {
    const store = new MemoryResourceStore()
    await store.remember([thing('a', { expiresAt: 1 })])
    const prune = t.mock.method(store, 'prune')
    prune.mock.mockImplementationOnce(() => Promise.reject(new Error('away')))
    assert.deepEqual(await left(t, store, [600_000, 599_999, 1]), [1, 1, 0])
    await store.remember([thing('b', { expiresAt: 1 })])
    const closed = new UpstreamResources({ store, logger: recordingLogger() })
    closed.close()
    const calls = prune.mock.callCount()
    t.mock.timers.tick(50)
    assert.equal(prune.mock.callCount(), calls)
  })

  it('are not deleted after close, at any later time', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const store = new MemoryResourceStore()
    const prune = t.mock.method(store, 'prune')
    const resources = new UpstreamResources({ store, logger: recordingLogger() })
    t.mock.timers.tick(599_999)
    resources.close()
    t.mock.timers.tick(600_000)
    assert.equal(prune.mock.callCount(), 0)
  })

  it('are not deleted further if closed during a deletion', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const store = new MemoryResourceStore()
    const { promise, resolve } = Promise.withResolvers<number>()
    const prune = t.mock.method(store, 'prune', () => promise)
    const resources = new UpstreamResources({ store, logger: recordingLogger() })
    t.mock.timers.tick(600_000)
    assert.equal(prune.mock.callCount(), 1)
    resources.close()
    // So many that the next ones would follow soon.
    resolve(500)
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    t.mock.timers.tick(1_200_000)
    assert.equal(prune.mock.callCount(), 1)
  })
})
