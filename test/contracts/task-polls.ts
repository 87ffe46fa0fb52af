import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { VideoTask } from '../../lib/endpoints/video/index.ts'
import { accountWallet, keyWallet } from '../../lib/ledger/index.ts'
import { assertSound } from './ledger-money.ts'
import {
  HOUR,
  intended,
  intentOf,
  NOON,
  type Payer,
  payer,
  type TasksUnderTest,
  taken,
} from './task-samples.ts'

/** The contract of a task store for polls, and for how tasks are found, listed and removed. */
export function taskPollsContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]
  const other = () => tested().stores.at(-1) ?? first()
  const LATER = NOON + HOUR

  /** Claims all that are due, and answers those of one account. */
  const claim = async (who: Payer, owner = 'p', now = LATER, until = now + 60_000) => {
    const due = await first().claimDue({ owner, now, until, limit: 10_000 })
    return due.filter(({ account }) => account === who.account).map(({ id }) => id)
  }

  describe('a task that is due', () => {
    it('is given to one process until it was observed or postponed, or the time of the process is over', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await taken(first(), who)
      assert.deepEqual(await claim(who, 'p', NOON + 1000), [], 'not yet')
      assert.deepEqual(await claim(who), [id])
      assert.deepEqual(await claim(who, 'q'), [])
      assert.deepEqual(await claim(who, 'q', LATER + 60_000), [id])

      await first().observe(id, { state: 'running' }, LATER, { owner: 'q', next: LATER + 5000 })
      assert.deepEqual(await claim(who, 'p', LATER + 4999), [])
      assert.deepEqual(await claim(who, 'p', LATER + 5000), [id])

      await first().postpone(id, { owner: 'q', next: LATER })
      assert.deepEqual(await claim(who, 'q', LATER + 5000), [], 'q has it no more')
      await first().observe(id, { state: 'running' }, LATER, { owner: 'q', next: LATER })
      assert.deepEqual(await claim(who, 'q', LATER + 5000), [])
      await first().observe(id, { state: 'running' }, LATER)
      assert.deepEqual(await claim(who, 'q', LATER + 5000), [], 'a caller’s own poll frees nothing')
      await first().postpone(id, { owner: 'p', next: LATER + 7000 })
      assert.deepEqual(await claim(who, 'q', LATER + 7000), [id])
    })

    it('is due at once if it was planned, or claimed, on a clock that was then set back', async () => {
      const who = await payer(tested(), 1000n)
      const [planned, claimed] = [await taken(first(), who), await taken(first(), who)]
      const AHEAD = LATER + 10 * HOUR
      assert.deepEqual(
        (await claim(who, 'ahead', AHEAD, AHEAD + 60_000)).sort(),
        [planned.id, claimed.id].sort(),
      )
      await first().observe(planned.id, { state: 'running' }, LATER, { owner: 'ahead', next: AHEAD })

      const claimNow = async (latest: number, owner = 'p') => {
        const due = await other().claimDue({
          owner,
          now: LATER,
          until: LATER + 60_000,
          latest,
          limit: 10_000,
        })
        return due.filter(({ account }) => account === who.account).map(({ id }) => id)
      }
      assert.deepEqual(await claimNow(AHEAD + 60_000), [], 'not later than a settler plans')
      assert.deepEqual(await claimNow(AHEAD), [claimed.id])
      assert.deepEqual(await claimNow(AHEAD - 1), [planned.id])
      assert.deepEqual(await claimNow(AHEAD - 1, 'q'), [])
    })

    it('is no longer due when it is finished', async () => {
      const who = await payer(tested(), 1000n)
      const [one, two] = [await taken(first(), who), await taken(first(), who)]
      await claim(who)
      await first().observe(one.id, { state: 'failed' }, LATER, { owner: 'p', next: LATER })
      await first().expire(NOON + 1, LATER, LATER, 1000)
      await first().postpone(two.id, { owner: 'p', next: LATER })
      assert.deepEqual(await claim(who, 'p', LATER + 48 * HOUR), [])
    })

    it('is one of many, of which two processes get different ones', async () => {
      const who = await payer(tested(), 10_000n)
      const made: VideoTask[] = []
      for (let i = 0; i < 30; i++) made.push(await taken(first(), who))
      await claim(who, 'nobody', NOON + 10_000, LATER)
      const asks = Array.from({ length: 12 }, (_, i) => {
        const store = i % 2 ? first() : other()
        return store.claimDue({ owner: `p${i}`, now: LATER, until: LATER + 60_000, limit: 5 })
      })
      const claims = await Promise.all(asks)
      assert.ok(claims.every(({ length }) => length <= 5))
      const got = claims
        .flat()
        .filter(({ account }) => account === who.account)
        .map(({ id }) => id)
      assert.equal(new Set(got).size, got.length, 'none was given twice')
      const left = await claim(who)
      assert.deepEqual([...got, ...left].sort(), made.map(({ id }) => id).sort())
    })
  })

  describe('tasks', () => {
    const listed = async (...asked: Parameters<ReturnType<typeof first>['list']>) =>
      (await other().list(...asked)).map(({ id }) => id)

    it('are not visible to another account', async () => {
      const [who, stranger] = [await payer(tested(), 1000n), await payer(tested(), 1000n)]
      const { id } = await taken(first(), who)
      assert.equal(await first().find(stranger.account, id), undefined)
      assert.equal(await first().remove(stranger.account, id), 'absent')
      assert.deepEqual(await listed({ account: stranger.account }, { order: 'newest', limit: 10 }), [])
    })

    it('are listed page by page, in either order', async () => {
      const who = await payer(tested(), 1000n)
      const ids: string[] = []
      for (let i = 0; i < 5; i++) ids.push((await taken(first(), who, { createdAt: NOON + i })).id)
      const [a, b, c, d, e] = ids
      const query = { account: who.account }
      const newest = { order: 'newest', limit: 2 } as const
      assert.deepEqual(await listed(query, newest), [e, d])
      assert.deepEqual(await listed(query, { ...newest, after: d }), [c, b])
      assert.deepEqual(await listed(query, { ...newest, after: a }), [])
      assert.deepEqual(await listed(query, { ...newest, skip: 4 }), [a])
      assert.deepEqual(await listed(query, { order: 'oldest', limit: 2, after: b }), [c, d])
      assert.equal(await first().count(query), 5)
    })

    it('are listed by their members', async () => {
      const who = await payer(tested(), 1000n)
      const one = await taken(first(), who)
      const two = await taken(first(), who, { model: 'video-large', protocol: 'ark' })
      const three = await intended(first(), intentOf(who, { createdAt: NOON + 5 }))
      await first().observe(two.id, { state: 'running' }, NOON)
      const cases: [query: object, ids: string[]][] = [
        [{ states: ['queued'] }, [one.id]],
        [{ states: ['queued', 'running'] }, [one.id, two.id]],
        [{ states: [] }, []],
        [{ model: 'video-large' }, [two.id]],
        [{ protocol: 'ark' }, [two.id]],
        [{ ids: [three.id, 'video_none'] }, [three.id]],
        [{ ids: [] }, []],
        [{ taken: true }, [one.id, two.id]],
        [{ taken: false }, [one.id, two.id, three.id]],
      ]
      for (const [query, ids] of cases) {
        const asked = { account: who.account, ...query }
        const found = await listed(asked, { order: 'oldest', limit: 10 })
        assert.deepEqual(found.sort(), [...ids].sort(), JSON.stringify(query))
        assert.equal(await first().count(asked), ids.length)
      }
    })

    it('are removed after they are finished, and their charges remain', async () => {
      const who = await payer(tested(), 1000n)
      const { id } = await taken(first(), who)
      assert.equal(await first().remove(who.account, id), 'unfinished')
      await first().observe(id, { state: 'succeeded' }, NOON)
      assert.equal(await other().remove(who.account, id), 'removed')
      assert.equal(await first().remove(who.account, id), 'absent')
      assert.equal(await first().find(who.account, id), undefined)
      const wallets = await tested().ledger.wallets([accountWallet(who.account), keyWallet(who.key)])
      assert.deepEqual(
        wallets.map(({ spent }) => spent),
        [85n, 85n],
      )
      await assertSound(tested().ledger)
    })

    it('are removed a while after they are finished, the oldest first, and their charges remain', async () => {
      const who = await payer(tested(), 1000n)
      const tasks: VideoTask[] = []
      for (let i = 0; i < 4; i++) tasks.push(await taken(first(), who))
      // Long before all that other tests leave behind.
      for (const [i, { id }] of tasks.slice(0, 3).entries()) {
        await first().observe(id, { state: 'succeeded' }, 1000 + i)
      }
      const [one, two, three, open] = tasks.map(({ id }) => id)
      const left = async () => (await listed({ account: who.account }, { order: 'oldest', limit: 10 })).sort()
      assert.equal(await first().prune(1002, 1), 1)
      assert.deepEqual(await left(), [two, three, open].sort())
      assert.equal(await first().prune(1002, 10), 1)
      assert.equal(await first().prune(1002, 10), 0)
      assert.deepEqual(await left(), [three, open].sort())
      assert.equal(await first().find(who.account, one ?? ''), undefined)
      const [account] = await tested().ledger.wallets([accountWallet(who.account)])
      assert.deepEqual([account?.spent, account?.leased], [255n, 85n])
      await assertSound(tested().ledger)
    })
  })
}
