import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BudgetPeriod, WalletId } from '../../../../lib/ledger/index.ts'
import { writeTogether } from '../../../../lib/stores/sql/driver/write-together.ts'
import { SqlAccountStore, SqlBudgetStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import {
  chargeHold,
  openHold,
  refusalOf,
  releaseHold,
} from '../../../../lib/stores/sql/ledger/sql-ledger-holds.ts'
import { UsageTally } from '../../../../lib/stores/sql/usage/usage-tally.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const [ONE, OTHER]: WalletId[] = ['budget:b1:1', 'budget:b2:1'] as const

/** The account `acme` with a thousand, and two budgets of a hundred each; two holds of forty on all of them. */
async function world(emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  const ledger = new SqlLedger(db)
  await new SqlAccountStore(db).create('acme', PREPAID, originOf())
  await ledger.deposit('acme', 1000n, 'opening', 1)
  const scope = { account: 'acme', key: null, user: null, tag: null }
  const budgets = ['b1', 'b2'].map((budget): BudgetPeriod => {
    return { budget, wallet: `budget:${budget}:1`, scope, refused: 'insufficient_balance', endsAt: null }
  })
  const store = new SqlBudgetStore(db)
  for (const id of ['b1', 'b2']) {
    const terms = { amount: 100n, hard: true, soft: [0.5] }
    await store.create({ id, scope, period: 'day', timezone: 'UTC', createdAt: 1, ...terms }, originOf())
  }
  for (const id of ['first', 'second']) {
    const hold = { id, account: 'acme', key: null, amount: 40n, budgets }
    assert.equal(await refusalOf(db, hold), undefined)
    assert.equal(await writeTogether(db, openHold(hold)), true)
  }
  const standing = { held: 40n, budgets: budgets.map(({ wallet }) => wallet), charged: false }
  const wallets: WalletId[] = ['account:acme', ...standing.budgets]
  return {
    ...{ db, ledger, budgets, standing },
    payer: { requestId: 'first', account: 'acme', key: null },
    figures: async () => (await ledger.wallets(wallets)).map(({ spent, leased }) => [spent, leased]),
    held: async () => {
      const ofBudgets = db.selectFrom('budget_holds').select(['request_id', 'wallet'])
      const rows = await db.selectFrom('holds').select('request_id').execute()
      const parts = (await ofBudgets.execute()).map(({ request_id, wallet }) => `${request_id} ${wallet}`)
      return [...rows.map(({ request_id }) => request_id), ...parts].sort()
    },
    told: async () =>
      (await db.selectFrom('webhook_events').select('subject').execute()).map(({ subject }) => subject),
  }
}

const SECOND = ['second', `second ${ONE}`, `second ${OTHER}`]

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`money held of budgets too: ${name}`, { skip }, () => {
    it('is charged to each of them, sends an event where a share is reached, and its parts go with it', async () => {
      const { db, ledger, standing, payer, figures, held, told } = await world(emptied)
      const usage = new UsageTally()
      const given = { ...payer, amount: 50n, at: 7, basis: '[]' }
      const writes = chargeHold(standing, given, usage)
      assert.equal(await writeTogether(db, [...writes, usage.write()]), true)
      assert.deepEqual(await figures(), [
        [50n, 40n],
        [50n, 40n],
        [50n, 40n],
      ])
      assert.deepEqual(await held(), SECOND)
      assert.deepEqual((await told()).sort(), ['budget:b1', 'budget:b2'])
      assert.equal(await writeTogether(db, writes), false, 'it is closed')
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('goes back to each of them, once, and so do its parts', async () => {
      const { db, ledger, standing, payer, figures, held } = await world(emptied)
      const writes = releaseHold(standing, payer)
      assert.deepEqual([await writeTogether(db, writes), await writeTogether(db, writes)], [true, false])
      assert.deepEqual(await figures(), [
        [0n, 40n],
        [0n, 40n],
        [0n, 40n],
      ])
      assert.deepEqual(await held(), SECOND)
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('is released without a word where nothing is held, though its wallets are not there', async () => {
      const { db, figures } = await world(emptied)
      const nothing = { held: 0n, budgets: ['budget:none:1' as const], charged: false }
      const payer = { requestId: 'third', account: 'nobody', key: 'none' }
      assert.equal(await writeTogether(db, releaseHold(nothing, payer)), true)
      const charged = { ...nothing, charged: true }
      const given = { ...payer, amount: 9n, at: 7, basis: null }
      assert.equal(await writeTogether(db, chargeHold(charged, given, new UsageTally())), true)
      assert.deepEqual(await figures(), [
        [0n, 80n],
        [0n, 80n],
        [0n, 80n],
      ])
    })

    it('is not opened twice under one name, nor where a budget has not that much left', async () => {
      const { db, budgets, held, figures } = await world(emptied)
      const before = [await held(), await figures()]
      const hold = { account: 'acme', key: null, budgets }
      const again = openHold({ ...hold, id: 'first', amount: 1n })
      assert.equal(await writeTogether(db, again), false)
      assert.equal(await writeTogether(db, openHold({ ...hold, id: 'third', amount: 21n })), false)
      assert.deepEqual([await held(), await figures()], before)
      const refused = await refusalOf(db, { ...hold, id: 'third', amount: 21n })
      assert.deepEqual(
        [refused?.refused, refused?.budget?.budget, refused?.required, refused?.available],
        ['quota_lease_exhausted', 'b1', 21n, 20n],
      )
      assert.equal(await writeTogether(db, openHold({ ...hold, id: 'third', amount: 20n })), true)
    })
  })
}
