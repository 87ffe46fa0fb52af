import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type { SessionStore } from '../../lib/management/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-store.ts'

/** Two handles of one store to try, with nothing in it. */
export interface SessionStoreUnderTest {
  stores: readonly [SessionStore, SessionStore]
  changes: ChangeLog
  close(): Promise<void>
}

/** The contract of every store of operators' sessions. */
export function sessionStoreContract(
  name: string,
  open: () => Promise<SessionStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`sessions: ${name}`, { skip }, () => {
    let opened: SessionStoreUnderTest
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    const session = (id: string, expiresAt: number) => ({
      id,
      name: 'ada@example.com (ada)',
      roles: ['support', 'finance'] as const,
      secretHash: `hash-${id}`,
      expiresAt,
    })

    it('are found by their secret through every handle, until they expire', async () => {
      const [one, other] = opened.stores
      const origin = originOf()
      await one.open(session('s1', origin.at + 100), origin)
      await one.open(session('s2', origin.at + 900), originOf())
      const { secretHash: _, ...expected } = { ...session('s1', origin.at + 100), createdAt: origin.at }
      assert.deepEqual(await other.findBySecret('hash-s1', origin.at + 99), expected)
      assert.equal(await other.findBySecret('hash-s1', origin.at + 100), undefined)
      for (const hash of ['', 's1', 'hash-s', 'HASH-S1'])
        assert.equal(await other.findBySecret(hash, origin.at), undefined)
      const listed = (at: number, after?: string) =>
        other.list({ limit: 10, at, after }).then((found) => found.map(({ id }) => id))
      assert.deepEqual(await listed(origin.at), ['s1', 's2'])
      assert.deepEqual(await listed(origin.at, 's1'), ['s2'])
      assert.deepEqual(await listed(origin.at + 100), ['s2'])
    })

    it('are listed in the order of their ids, a page at a time', async () => {
      const [one, other] = opened.stores
      const origin = originOf()
      for (const id of ['s2', 's1', 's3'])
        await one.open(session(id, origin.at + 100), { ...originOf(), at: origin.at })
      const all = ['s1', 's2', 's3'].map((id) => {
        const { secretHash: _, ...kept } = session(id, origin.at + 100)
        return { ...kept, createdAt: origin.at }
      })
      assert.deepEqual(await other.list({ limit: 10, at: origin.at }), all)
      assert.deepEqual(await other.list({ limit: 2, at: origin.at }), all.slice(0, 2))
      assert.deepEqual(await other.list({ limit: 2, at: origin.at, after: 's2' }), all.slice(2))
    })

    it('are recorded with their owner and their rights', async () => {
      const [one, other] = opened.stores
      const [begin, end] = [originOf('ada'), originOf('eve')]
      await one.open(session('s1', begin.at + 100), begin)
      await other.end('s1', end)
      const { name, roles } = session('s1', 0)
      assert.deepEqual(await opened.changes.list({ subject: 's1', limit: 10 }), [
        { ...end, action: 'session.ended', subject: 's1', before: { name, roles }, after: null },
        { ...begin, action: 'session.opened', subject: 's1', before: null, after: { name, roles } },
      ])
    })

    it('end through every handle, once, without effect on others', async () => {
      const [one, other] = opened.stores
      const until = originOf().at + 1_000_000
      await one.open(session('s1', until), originOf('ada'))
      await one.open(session('s2', until), originOf())
      const ends = await Promise.all([one, other].map((store) => store.end('s1', originOf('eve'))))
      assert.deepEqual(ends.sort(), [false, true])
      assert.equal(await one.findBySecret('hash-s1', 0), undefined)
      assert.equal((await one.findBySecret('hash-s2', 0))?.id, 's2')
      const changes = await opened.changes.list({ subject: 's1', limit: 10 })
      assert.deepEqual(
        changes.map(({ action, actor }) => [action, actor]),
        [
          ['session.ended', 'eve'],
          ['session.opened', 'ada'],
        ],
      )
      assert.ok(!JSON.stringify(changes).includes('hash'))
    })

    it('that have expired are removed when another one is opened', async () => {
      const [one, other] = opened.stores
      const { at } = originOf()
      await one.open(session('s1', at + 1), originOf())
      await other.open(session('s2', at + 1_000_000), { ...originOf(), at: at + 10 })
      assert.equal(await one.end('s1', originOf()), false)
      assert.equal(await one.end('s2', originOf()), true)
    })
  })
}
