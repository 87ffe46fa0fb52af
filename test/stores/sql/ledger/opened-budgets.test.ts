import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import type { WalletId } from '../../../../lib/ledger/index.ts'
import {
  type Database,
  SqlAccountStore,
  SqlBudgetStore,
  SqlLedger,
} from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { charge, take } from '../../../contracts/ledger-money.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const DAY_MS = 86_400_000
const AT = 1_700_000_000_000

/** The account `acme` with budgets of some terms, and one that is deleted. */
async function world(emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  await new SqlAccountStore(db).create('acme', PREPAID, originOf())
  const budgets = new SqlBudgetStore(db)
  const scope = { account: 'acme', key: null, user: null, tag: null }
  const create = async (id: string, terms: { amount: bigint; hard: boolean; soft: readonly number[] }) => {
    const when = { period: 'day', timezone: 'UTC', createdAt: 1 } as const
    assert.equal(await budgets.create({ id, scope, ...when, ...terms }, originOf()), 'created')
  }
  await create('hard', { amount: 1000n, hard: true, soft: [0.5, 0.9] })
  await create('soft', { amount: 70n, hard: false, soft: [] })
  await create('gone', { amount: 9n, hard: true, soft: [0.5] })
  assert.equal(await budgets.delete('gone', originOf()), true)
  return { db, ledger: new SqlLedger(db), budgets }
}

/** Wallets that nothing is leased of, for days long past; the ids. */
async function pastWallets(db: Database, budget: string, count: number, leased = 0n): Promise<WalletId[]> {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const ids = Array.from({ length: count }, (_, i) => budgetWallet(budget, today - (101 + i) * DAY_MS))
  const figures = { limited: 1, funds: 5n, spent: 0n, leased, overrun: 0n }
  await db
    .insertInto('wallets')
    .values(ids.map((id) => ({ id, ...figures })))
    .execute()
  return ids
}

async function told(db: Database): Promise<string[]> {
  const rows = await db
    .selectFrom('webhook_events')
    .select(['type', 'subject', 'at', 'data'])
    .where('subject', 'like', 'budget:%')
    .execute()
  return rows
    .map(({ type, subject, at, data }) => {
      const { share, spent } = JSON.parse(String(data))
      return `${BigInt(at) - BigInt(AT)} ${type} ${subject} ${share} ${spent}`
    })
    .sort()
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`the wallet of a period without spending: ${name}`, { skip }, () => {
    it('has the terms of its budget, and only counts for one that is deleted or was never there', async () => {
      const { db, ledger } = await world(emptied)
      const ids = ['hard', 'soft', 'gone', 'never'].map((id) => budgetWallet(id, 1))
      const answers = await ledger.change(
        'p',
        ids.map((id) => take(`of ${id}`, id, 5n)),
      )
      assert.deepEqual(
        answers.map(({ moved }) => moved),
        [5n, 0n, 0n, 0n],
      )
      const opened = await ledger.wallets(ids)
      assert.deepEqual(
        opened.map(({ limited, funds, leased }) => [limited, funds, leased]),
        [
          [true, 1000n, 5n],
          [false, 70n, 0n],
          [false, 0n, 0n],
          [false, 0n, 0n],
        ],
      )
      const notices = await db
        .selectFrom('budget_notices')
        .select(['wallet', 'amount', 'type'])
        .orderBy('wallet')
        .orderBy('amount')
        .execute()
      assert.deepEqual(
        notices.map(({ wallet, amount, type }) => [wallet, amount, type]),
        [
          [ids[0], 500n, 'budget.threshold'],
          [ids[0], 900n, 'budget.threshold'],
          [ids[0], 1000n, 'budget.exhausted'],
          [ids[1], 70n, 'budget.exhausted'],
        ],
      )
    })

    it('is opened for a charge too that held nothing of it, and the charge counts there', async () => {
      const { ledger } = await world(emptied)
      const budgets = [budgetWallet('hard', 1), budgetWallet('soft', 1)]
      assert.deepEqual(await ledger.settle([charge('acme', 7n, { budgets })]), ['written'])
      assert.deepEqual(
        (await ledger.wallets(budgets)).map(({ limited, funds, spent }) => [limited, funds, spent]),
        [
          [true, 1000n, 7n],
          [false, 70n, 7n],
        ],
      )
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('has a hundred of those long past deleted, but for the newest ten, of each budget that is opened, and none of another', async () => {
      const { db, ledger } = await world(emptied)
      await pastWallets(db, 'hard', 130)
      await pastWallets(db, 'soft', 20)
      const [inUse] = await pastWallets(db, 'soft2', 3)
      const left = async (budget: string) => {
        const ids = db.selectFrom('wallets').select('id').where('id', 'like', `budget:${budget}:%`)
        return (await ids.execute()).length
      }
      const openAt = async (start: number) => {
        const ids = ['hard', 'soft'].map((id) => budgetWallet(id, Date.now() - start))
        await ledger.change(
          'p',
          ids.map((id) => take(`of ${id}`, id, 1n)),
        )
      }
      await openAt(1)
      assert.deepEqual([await left('hard'), await left('soft'), await left('soft2')], [31, 11, 3])
      await openAt(2)
      assert.deepEqual([await left('hard'), await left('soft'), await left('soft2')], [11, 11, 3])
      assert.equal((await ledger.wallets([inUse as WalletId])).length, 1)
    })

    it('that is long past itself is not deleted by what opens it, nor one of which something is leased', async () => {
      const { db, ledger } = await world(emptied)
      const leased = await pastWallets(db, 'hard', 2, 1n)
      const old = budgetWallet('hard', Date.now() - 300 * DAY_MS)
      const [answer] = await ledger.change('p', [take('l', old, 5n)])
      assert.equal(answer?.moved, 5n)
      assert.equal((await ledger.wallets([old, ...leased])).length, 3)
    })
  })

  describe(`the notice of a budget: ${name}`, { skip }, () => {
    it('comes in the order of its shares, from the charge on that reaches several', async () => {
      const { db, ledger } = await world(emptied)
      const [hard, soft] = [budgetWallet('hard', 1), budgetWallet('soft', 1)]
      await ledger.settle([charge('acme', 69n, { at: AT, budgets: [hard, soft] })])
      assert.deepEqual(await told(db), [])
      await ledger.settle([charge('acme', 931n, { at: AT, budgets: [hard] })])
      const all = [
        '0 budget.threshold budget:hard 0.5 0.0000005',
        '1 budget.threshold budget:hard 0.9 0.0000009',
        '2 budget.exhausted budget:hard 1 0.000001',
      ]
      assert.deepEqual(await told(db), all)
      await ledger.settle([charge('acme', 1n, { at: AT, budgets: [hard, soft] })])
      assert.deepEqual(await told(db), ['0 budget.exhausted budget:soft 1 0.00000007', ...all].sort())
    })

    it('sends an event when it refuses a call, with the amount spent, and none when all of it is spent', async () => {
      const { db, ledger, budgets } = await world(emptied)
      const [hard, soft] = [budgetWallet('hard', 1), budgetWallet('soft', 1)]
      await budgets.noteRefusal(hard, AT)
      assert.deepEqual(await told(db), [], 'nobody has spent in that period')
      await ledger.settle([charge('acme', 20n, { at: AT, budgets: [hard, soft] })])
      for (const at of [AT + 5, AT + 9]) await budgets.noteRefusal(hard, at)
      const once = '5 budget.exhausted budget:hard 1 0.00000002'
      assert.deepEqual(await told(db), [once])
      await ledger.settle([charge('acme', 980n, { at: AT, budgets: [hard] })])
      assert.deepEqual(await told(db), [
        '0 budget.threshold budget:hard 0.5 0.0000005',
        '1 budget.threshold budget:hard 0.9 0.0000009',
        once,
      ])
    })

    it('sends no second event after a change of its amount, even if the first one was deleted', async () => {
      const { db, ledger, budgets } = await world(emptied)
      const scope = { account: 'acme', key: null, user: null, tag: null }
      const terms = { amount: 1000n, hard: true, soft: [0.5, 0.9] }
      const when = { period: 'total', timezone: 'UTC', createdAt: 1 } as const
      await budgets.create({ id: 'all', scope, ...when, ...terms }, originOf())
      const all = budgetWallet('all', 0)
      await ledger.settle([charge('acme', 600n, { at: AT, budgets: [all] })])
      assert.deepEqual(await told(db), ['0 budget.threshold budget:all 0.5 0.0000005'])
      await db.deleteFrom('webhook_events').execute()
      await budgets.change('all', (now) => ({ ...now, amount: 800n }), originOf())
      await ledger.settle([charge('acme', 130n, { at: AT, budgets: [all] })])
      const left = (await told(db)).map((line) => line.split(' ').slice(1).join(' '))
      assert.deepEqual(left, ['budget.threshold budget:all 0.9 0.00000072'])
    })
  })
}
