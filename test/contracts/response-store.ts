import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { ResponseRecord, ResponseStore } from '../../lib/endpoints/responses/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** Two handles of one store, as two processes have them, and how to be done with them. */
export interface ResponseStoreUnderTest {
  readonly stores: readonly [ResponseStore, ResponseStore]
  close(): Promise<void>
}

const record = (id: string, extra: Partial<ResponseRecord> = {}): ResponseRecord => ({
  account: 'acme',
  id,
  line: 'line-0',
  model: 'chat',
  tokens: 10,
  createdAt: 1_700_000_000_000,
  ...extra,
})

/** What every store of responses must do. */
export function responseStoreContract(
  name: string,
  open: () => Promise<ResponseStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`response store: ${name}`, { skip }, () => {
    let opened: ResponseStoreUnderTest
    let here: ResponseStore
    let there: ResponseStore
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      const [one, other] = opened.stores
      here = one
      there = other
    })

    it('finds in one process what another has noted, as soon as that is done', async () => {
      const noted = record('resp_found', { tokens: 5_000_000_000 })
      await here.remember(noted)
      assert.deepEqual(await there.find('acme', 'resp_found'), noted)
    })

    it('knows nothing of what was never noted', async () => {
      assert.equal(await here.find('acme', 'resp_none'), undefined)
      assert.equal(await here.find('acme', ''), undefined)
      await here.forget('acme', 'resp_none')
    })

    it('shows no account what is another’s', async () => {
      await here.remember(record('resp_own'))
      assert.equal(await there.find('globex', 'resp_own'), undefined)
      await there.forget('globex', 'resp_own')
      assert.ok(await there.find('acme', 'resp_own'))
    })

    it('replaces what it knows when a response is noted again', async () => {
      await here.remember(record('resp_again'))
      await there.remember(record('resp_again', { line: 'line-1', tokens: 99, createdAt: 1_800_000_000_000 }))
      assert.deepEqual(
        await here.find('acme', 'resp_again'),
        record('resp_again', { line: 'line-1', tokens: 99, createdAt: 1_800_000_000_000 }),
      )
    })

    it('keeps apart what two lines have given one id', async () => {
      await here.remember(record('resp_twice'))
      await here.remember(record('resp_twice', { account: 'globex', line: 'line-1' }))
      assert.equal((await there.find('acme', 'resp_twice'))?.line, 'line-0')
      assert.equal((await there.find('globex', 'resp_twice'))?.line, 'line-1')
      await there.forget('acme', 'resp_twice')
      assert.equal(await here.find('acme', 'resp_twice'), undefined)
      assert.equal((await here.find('globex', 'resp_twice'))?.line, 'line-1')
    })

    it('takes an id that one line has given to two accounts for neither’s', async () => {
      await here.remember(record('resp_shared'))
      await here.remember(record('resp_shared', { account: 'globex' }))
      assert.equal(await there.find('acme', 'resp_shared'), undefined)
      assert.equal(await there.find('globex', 'resp_shared'), undefined)
    })

    it('forgets, and forgetting again changes nothing', async () => {
      await here.remember(record('resp_gone'))
      await there.forget('acme', 'resp_gone')
      await there.forget('acme', 'resp_gone')
      assert.equal(await here.find('acme', 'resp_gone'), undefined)
    })

    it('takes ids for what they are, letter by letter', async () => {
      await here.remember(record('resp_A'))
      assert.equal(await here.find('acme', 'resp_a'), undefined)
      assert.equal(await here.find('acme', 'resp_A '), undefined)
      assert.equal(await here.find('acme', 'resp%'), undefined)
    })

    it('prunes what is older than a time, no more than it is told to at once', async () => {
      const old = ['resp_old_1', 'resp_old_2', 'resp_old_3']
      for (const [i, id] of old.entries()) await here.remember(record(id, { createdAt: 100 + i }))
      await here.remember(record('resp_edge', { createdAt: 200 }))
      assert.equal(await here.prune(200, 2), 2)
      assert.equal(await here.prune(200, 2), 1)
      assert.equal(await here.prune(200, 2), 0)
      for (const id of old) assert.equal(await here.find('acme', id), undefined)
      assert.ok(await here.find('acme', 'resp_edge'))
    })

    it('notes many at once, the same one by both processes among them', async () => {
      const ids = Array.from({ length: 50 }, (_, i) => `resp_many_${i}`)
      await Promise.all([here, there].flatMap((store) => ids.map((id) => store.remember(record(id)))))
      const found = await Promise.all(ids.map((id) => there.find('acme', id)))
      assert.deepEqual(
        found.map((one) => one?.id),
        ids,
      )
    })
  })
}
