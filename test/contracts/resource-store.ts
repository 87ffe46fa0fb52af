import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type {
  ResourceName,
  ResourcePage,
  ResourceStore,
  UpstreamResource,
} from '../../lib/middleware/references/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** Two handles of one store, as two processes have them, and how to be done with them. */
export interface ResourceStoreUnderTest {
  readonly stores: readonly [ResourceStore, ResourceStore]
  close(): Promise<void>
}

const record = (id: string, extra: Partial<UpstreamResource> = {}): UpstreamResource => ({
  kind: 'response',
  id,
  account: 'acme',
  key: 'key_acme',
  line: 'line-0',
  model: 'chat',
  tokens: 10,
  createdAt: 1_700_000_000_000,
  expiresAt: 1_800_000_000_000,
  ...extra,
})

const name = (id: string, kind = 'response'): ResourceName => ({ kind, id })

/** The contract of every store of kept things. */
export function resourceStoreContract(
  of: string,
  open: () => Promise<ResourceStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`resource store: ${of}`, { skip }, () => {
    let opened: ResourceStoreUnderTest
    let here: ResourceStore
    let there: ResourceStore
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      const [one, other] = opened.stores
      here = one
      there = other
    })

    it('finds a resource in one process as soon as another has recorded it', async () => {
      const noted = record('resp_found', { tokens: 5_000_000_000 })
      await here.remember([noted])
      assert.deepEqual((await there.find('acme', [name('resp_found')]))[0], noted)
    })

    it('finds no resource that was never recorded', async () => {
      assert.equal((await here.find('acme', [name('resp_none')]))[0], undefined)
      assert.equal((await here.find('acme', [name('')]))[0], undefined)
      await here.forget('acme', name('resp_none'))
    })

    it('does not return resources of another account', async () => {
      await here.remember([record('resp_own')])
      assert.equal((await there.find('globex', [name('resp_own')]))[0], undefined)
      await there.forget('globex', name('resp_own'))
      assert.ok((await there.find('acme', [name('resp_own')]))[0])
    })

    it('replaces a record when a response is recorded again', async () => {
      await here.remember([record('resp_again')])
      await there.remember([
        record('resp_again', { line: 'line-1', tokens: 99, createdAt: 1_800_000_000_000 }),
      ])
      assert.deepEqual(
        (await here.find('acme', [name('resp_again')]))[0],
        record('resp_again', { line: 'line-1', tokens: 99 }),
        'it is as old as it was',
      )
    })

    it('keeps resources with the same id on two lines apart', async () => {
      await here.remember([record('resp_twice')])
      await here.remember([record('resp_twice', { account: 'globex', line: 'line-1' })])
      assert.equal((await there.find('acme', [name('resp_twice')]))[0]?.line, 'line-0')
      assert.equal((await there.find('globex', [name('resp_twice')]))[0]?.line, 'line-1')
      await there.forget('acme', name('resp_twice'))
      assert.equal((await here.find('acme', [name('resp_twice')]))[0], undefined)
      assert.equal((await here.find('globex', [name('resp_twice')]))[0]?.line, 'line-1')
    })

    it('returns an id that one line gave to two accounts to neither', async () => {
      await here.remember([record('resp_shared')])
      await here.remember([record('resp_shared', { account: 'globex' })])
      assert.equal((await there.find('acme', [name('resp_shared')]))[0], undefined)
      assert.equal((await there.find('globex', [name('resp_shared')]))[0], undefined)
    })

    it('deletes a record, and a repeated deletion changes nothing', async () => {
      await here.remember([record('resp_gone')])
      await there.forget('acme', name('resp_gone'))
      await there.forget('acme', name('resp_gone'))
      assert.equal((await here.find('acme', [name('resp_gone')]))[0], undefined)
    })

    it('keeps the same id of two kinds apart, and finds several kinds at once', async () => {
      const file = record('same', { kind: 'file', line: 'line-1', model: null, key: null, expiresAt: null })
      await here.remember([record('same'), file])
      assert.deepEqual(await there.find('acme', [name('same', 'file')]), [file])
      assert.deepEqual(await there.find('acme', [name('same', 'thread')]), [])
      assert.equal((await there.find('acme', [name('same'), name('same', 'file'), name('none')])).length, 2)
      await here.forget('acme', name('same', 'file'))
      assert.equal((await there.find('acme', [name('same'), name('same', 'file')])).length, 1)
    })

    it('writes and finds nothing without a name', async () => {
      await here.remember([])
      assert.deepEqual(await here.find('acme', []), [])
    })

    it('compares ids exactly, character by character', async () => {
      await here.remember([record('resp_A')])
      assert.equal((await here.find('acme', [name('resp_a')]))[0], undefined)
      assert.equal((await here.find('acme', [name('resp_A ')]))[0], undefined)
      assert.equal((await here.find('acme', [name('resp%')]))[0], undefined)
    })

    describe('lists', () => {
      const listed = (id: string, createdAt: number, extra: Partial<UpstreamResource> = {}) =>
        record(id, { kind: 'file', account: 'lister', createdAt, expiresAt: null, ...extra })
      const ask = async (page: Partial<ResourcePage> = {}, account = 'lister') => {
        const whole = { lines: ['line-0', 'line-1'], order: 'newest', aliveAt: 1000, limit: 100 } as const
        return (await there.list(account, 'file', { ...whole, ...page })).map(({ id }) => id)
      }
      before(async () => {
        await here.remember([
          listed('f1', 1),
          listed('f2', 2, { line: 'line-1' }),
          listed('f3a', 3),
          listed('f3b', 3),
          listed('f4', 4, { expiresAt: 1000 }),
          listed('f5', 5, { expiresAt: 1001 }),
          listed('f6', 6, { line: 'line-gone' }),
          listed('f7', 7, { account: 'other' }),
          listed('both', 8),
          listed('both', 8, { account: 'other' }),
          listed('v1', 9, { kind: 'voice' }),
        ])
      })

      it('return the resources of an account on the lines, newest first or oldest first', async () => {
        assert.deepEqual(await ask(), ['f5', 'f3b', 'f3a', 'f2', 'f1'])
        assert.deepEqual(await ask({ order: 'oldest' }), ['f1', 'f2', 'f3a', 'f3b', 'f5'])
        assert.deepEqual(await ask({ lines: ['line-1'] }), ['f2'])
        assert.deepEqual(await ask({ lines: [] }), [])
        assert.deepEqual(await ask({}, 'other'), ['f7'])
        assert.deepEqual(await ask({}, 'nobody'), [])
      })

      it('contain a resource whose id another account has on another line, or for another kind', async () => {
        await here.remember([
          listed('apart', 1, { account: 'one' }),
          listed('apart', 1, { account: 'two', line: 'line-1' }),
          listed('alike', 2, { account: 'one' }),
          listed('alike', 2, { account: 'two', kind: 'voice' }),
        ])
        assert.deepEqual(await ask({}, 'one'), ['alike', 'apart'])
        assert.deepEqual(await ask({}, 'two'), ['apart'])
      })

      it('return pages, also after a deleted resource', async () => {
        for (const order of ['newest', 'oldest'] as const) {
          const all = await ask({ order })
          for (let size = 1; size <= 3; size++) {
            const seen: string[] = []
            let after: ResourcePage['after']
            for (;;) {
              const page: Partial<ResourcePage> = { order, limit: size, after }
              const found = await there.list('lister', 'file', {
                lines: ['line-0', 'line-1'],
                order: 'newest',
                aliveAt: 1000,
                limit: 1,
                ...page,
              })
              if (found.length === 0) break
              after = found.at(-1)
              seen.push(...found.map(({ id }) => id))
            }
            assert.deepEqual(seen, all)
          }
        }
        assert.deepEqual(await ask({ after: { createdAt: 3, id: 'f3aa' } }), ['f3a', 'f2', 'f1'])
      })

      it('return no deleted resource, and a resource that is recorded again at its old place', async () => {
        await here.remember([listed('f0', 0), listed('f2', 50, { line: 'line-1' })])
        assert.deepEqual(await ask(), ['f5', 'f3b', 'f3a', 'f2', 'f1', 'f0'])
        await here.forget('lister', name('f0', 'file'))
        assert.deepEqual(await ask(), ['f5', 'f3b', 'f3a', 'f2', 'f1'])
      })
    })

    it('prunes resources that expired before a time, at most the given number at once', async () => {
      const old = ['resp_old_1', 'resp_old_2', 'resp_old_3']
      for (const [i, id] of old.entries()) await here.remember([record(id, { expiresAt: 100 + i })])
      await here.remember([
        record('resp_edge', { expiresAt: 200 }),
        record('resp_for_good', { expiresAt: null }),
      ])
      assert.equal(await here.prune(200, 2), 2)
      assert.equal(await here.prune(200, 2), 1)
      assert.equal(await here.prune(200, 2), 0)
      assert.deepEqual(
        await here.find(
          'acme',
          old.map((id) => name(id)),
        ),
        [],
      )
      assert.equal((await here.find('acme', [name('resp_edge'), name('resp_for_good')])).length, 2)
    })

    it('records many at once, also the same one by both processes', async () => {
      const ids = Array.from({ length: 50 }, (_, i) => `resp_many_${i}`)
      await Promise.all(
        [here, there].flatMap((store) => ids.map((id) => store.remember([record(id), record(id)]))),
      )
      const found = await there.find(
        'acme',
        ids.map((id) => name(id)),
      )
      assert.deepEqual(found.map(({ id }) => id).sort(), ids.sort())
    })
  })
}
