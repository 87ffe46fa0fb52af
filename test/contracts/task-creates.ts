import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet } from '../../lib/ledger/index.ts'
import { entryAt } from './call-store.ts'
import { assertSound, fresh, leaseOf } from './ledger-money.ts'
import {
  created,
  HOUR,
  intended,
  intentOf,
  leasedOf,
  moneyOf,
  NOON,
  PRICE,
  payer,
  type TasksUnderTest,
  taken,
} from './task-samples.ts'

/** How tasks begin: intended, then created, withdrawn or in doubt. */
export function taskCreatesContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]
  const other = () => tested().stores.at(-1) ?? first()

  describe('an intent', () => {
    it('holds its money on account and key, and is not in the lists of callers', async () => {
      const who = await payer(tested(), 1000n, 500n)
      const intent = intentOf(who)
      const task = await intended(first(), intent)
      assert.deepEqual([task.state, task.upstreamId, task.hold], ['intended', null, 85n])
      assert.deepEqual(await other().find(who.account, intent.id), task)
      assert.deepEqual(await moneyOf(tested(), who), [
        [1000n, 0n, 85n, 0n],
        [500n, 0n, 85n, 0n],
      ])
      const query = { account: who.account, taken: true }
      assert.deepEqual(await first().list(query, { order: 'newest', limit: 10 }), [])
      assert.deepEqual(await first().claimDue({ owner: 'p', now: NOON + HOUR, until: NOON, limit: 1000 }), [])
      await assertSound(tested().ledger)
    })

    it('that is repeated holds nothing more', async () => {
      const who = await payer(tested(), 100n)
      const intent = intentOf(who)
      const task = await intended(first(), intent)
      assert.deepEqual(await other().intend(intent), { kind: 'held', task })
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
    })

    it('of a free video needs no money', async () => {
      const who = { account: fresh('unknown'), key: fresh('unknown') }
      const free = { ...PRICE, perRequest: 0n, perSecond: 0n }
      const task = await taken(first(), who, { hold: 0n, price: free })
      const { task: over } = (await first().observe(task.id, { state: 'succeeded' }, NOON)) ?? {}
      assert.equal(over?.charge?.amount, 0n)
      await assertSound(tested().ledger)
    })

    it('of a postpaid account is held too, and never refused', async () => {
      const who = { account: fresh('postpaid'), key: fresh('key') }
      const { ledger } = tested()
      await ledger.setLimit(accountWallet(who.account), { limited: false })
      await ledger.setLimit(keyWallet(who.key), { limited: false })
      const task = await taken(first(), who)
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
      await first().observe(task.id, { state: 'succeeded' }, NOON)
      assert.deepEqual(await moneyOf(tested(), who), [
        [0n, 85n, 0n, 0n],
        [0n, 85n, 0n, 0n],
      ])
    })
  })

  describe('an intent is refused', () => {
    it('as spent, for the key first; and leaves nothing behind', async () => {
      for (const [balance, quota, refused, available] of [
        [84n, 84n, 'key_quota_exhausted', 84n],
        [84n, 85n, 'insufficient_balance', 84n],
        [84n, undefined, 'insufficient_balance', 84n],
        [1000n, 0n, 'key_quota_exhausted', 0n],
      ] as const) {
        const who = await payer(tested(), balance, quota)
        const intent = intentOf(who)
        const answer = await first().intend(intent)
        assert.deepEqual(answer, { kind: 'refused', refused, required: 85n, available })
        assert.equal(await first().find(who.account, intent.id), undefined)
        assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      }
    })

    it('if the ledger does not know the account, but not for an unknown key, which has no quota', async () => {
      const known = await payer(tested(), 1000n, 1000n)
      const stranger = await first().intend(intentOf({ ...known, account: fresh('unknown') }))
      assert.equal(stranger.kind === 'refused' && stranger.refused, 'insufficient_balance')
      const keyless = { ...known, key: fresh('unknown') }
      assert.equal((await first().intend(intentOf(keyless))).kind, 'held')
      assert.deepEqual(await leasedOf(tested(), keyless), [85n, 85n])
      assert.deepEqual((await tested().ledger.check()).violations, [])
    })

    it('as held if leases of processes, or other tasks, hold the money', async () => {
      const { ledger } = tested()
      const [one, two, three] = [
        await payer(tested(), 100n),
        await payer(tested(), 1000n, 100n),
        await payer(tested(), 100n),
      ]
      await leaseOf(ledger, accountWallet(one.account), 16n)
      await leaseOf(ledger, keyWallet(two.key), 16n)
      await taken(first(), three)
      for (const [who, available] of [
        [one, 84n],
        [two, 84n],
        [three, 15n],
      ] as const) {
        assert.deepEqual(await first().intend(intentOf(who)), {
          kind: 'refused',
          refused: 'quota_lease_exhausted',
          required: 85n,
          available,
        })
      }
      await assertSound(ledger)
    })

    it('for one of two concurrent intents for the last money', async () => {
      const who = await payer(tested(), 100n)
      const answers = await Promise.all([first().intend(intentOf(who)), other().intend(intentOf(who))])
      assert.deepEqual(answers.map(({ kind }) => kind).sort(), ['held', 'refused'])
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
    })
  })

  describe('a create', () => {
    it('that is redirected continues on another line, at its price', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      await intended(first(), intent)
      const price = { ...PRICE, perSecond: 7n }
      const target = { line: 'line-b', upstreamModel: 'seedance', price, answerBy: NOON + 90_000 }
      assert.equal(await first().redirect(intent.id, target), true)
      assert.deepEqual(await idsOf(first().markUnanswered(NOON + 89_999, 1000), intent.id), [])
      const task = await first().created(intent.id, created(), NOON)
      assert.deepEqual([task?.line, task?.upstreamModel, task?.price], ['line-b', 'seedance', price])
      assert.equal(await first().redirect(intent.id, target), false, 'it is somewhere already')
    })

    it('that was refused everywhere leaves nothing behind', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      await intended(first(), intent)
      for (let times = 0; times < 2; times++) await other().withdraw(intent.id)
      assert.equal(await first().find(who.account, intent.id), undefined)
      assert.deepEqual(await leasedOf(tested(), who), [0n, 0n])
      assert.equal(await first().created(intent.id, created(), NOON), undefined)
      assert.equal(await first().redirect(intent.id, { ...intent }), false)
      await assertSound(tested().ledger)
    })

    it('that was recorded cannot be withdrawn', async () => {
      const who = await payer(tested(), 1000n)
      const task = await taken(first(), who)
      await first().withdraw(task.id)
      assert.deepEqual(await first().find(who.account, task.id), task)
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
    })

    it('that is recorded again does not change', async () => {
      const who = await payer(tested(), 1000n)
      const task = await taken(first(), who)
      assert.deepEqual(await other().created(task.id, created({ upstreamId: 'up_2' }), NOON + 1), task)
    })

    it('whose answer is the finished video is charged at once', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      await intended(first(), intent)
      const entry = entryAt(NOON, { id: intent.requestId })
      const task = await first().created(
        intent.id,
        created({ observation: { state: 'succeeded', usage: { seconds: 4 } }, entry }),
        NOON,
      )
      assert.deepEqual([task?.state, task?.charge?.amount], ['succeeded', 45n])
      assert.deepEqual(await moneyOf(tested(), who), [
        [1000n, 45n, 0n, 0n],
        [0n, 45n, 0n, 0n],
      ])
      if (!first().settlesRecords) return
      const logged = await tested().calls.find(intent.requestId)
      assert.deepEqual([logged?.billing?.reserved, logged?.billing?.charged], ['0.000000085', '0.000000045'])
    })

    it('without an answer in time is uncertain, once, and its money remains held', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who, { createdAt: NOON + HOUR })
      await intended(first(), intent)
      assert.deepEqual(await idsOf(first().markUnanswered(intent.answerBy - 1, 1000), intent.id), [])
      const both = await Promise.all([
        idsOf(first().markUnanswered(intent.answerBy, 1000), intent.id),
        idsOf(other().markUnanswered(intent.answerBy, 1000), intent.id),
      ])
      assert.deepEqual(both.flat(), [intent.id])
      assert.equal((await first().find(who.account, intent.id))?.state, 'unresolved')
      assert.equal(await first().count({ account: who.account, states: ['unresolved'] }), 1)
      assert.deepEqual(await leasedOf(tested(), who), [85n, 85n])
    })

    it('that is uncertain continues when its answer arrives', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      await intended(first(), intent)
      await first().markUnresolved(intent.id, NOON)
      assert.equal((await first().created(intent.id, created(), NOON + 1))?.state, 'queued')
      await first().markUnresolved(intent.id, NOON)
      assert.equal((await first().find(who.account, intent.id))?.state, 'queued', 'there is no doubt now')
      assert.deepEqual(await idsOf(first().markUnanswered(NOON + HOUR, 1000), intent.id), [])
    })

    it('whose answer arrives after it was given up changes nothing', async () => {
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      await intended(first(), intent)
      await first().expire(NOON + 1, NOON + 48 * HOUR, NOON + 72 * HOUR, 1000)
      const task = await first().created(intent.id, created(), NOON + 48 * HOUR)
      assert.deepEqual([task?.state, task?.upstreamId], ['expired', null])
      assert.deepEqual(await moneyOf(tested(), who), [
        [1000n, 0n, 0n, 0n],
        [0n, 0n, 0n, 0n],
      ])
    })
  })
}

/** The tasks of a list that are this one. */
async function idsOf(tasks: Promise<readonly { id: string }[]>, id: string): Promise<string[]> {
  return (await tasks).map((task) => task.id).filter((found) => found === id)
}
