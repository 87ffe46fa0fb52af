import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SqlAccountStore, SqlBudgetStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { charge, take } from '../../../contracts/ledger-money.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`the notices of budgets: ${name}`, { skip }, () => {
    it('each share once, by the charge that reaches it, over all processes and changes', async () => {
      const { db, other } = await emptied()
      const ledgers = [new SqlLedger(db), new SqlLedger(other)] as const
      await new SqlAccountStore(db).create('acme', PREPAID, originOf())
      const budgets = new SqlBudgetStore(db)
      const scope = { account: 'acme', key: null, user: null, tag: null }
      const terms = { amount: 100n, hard: true, soft: [0.5, 0.8] }
      for (const id of ['b1', 'b2'])
        await budgets.create(
          { id, scope, period: 'total', timezone: 'UTC', createdAt: 1, ...terms },
          originOf(),
        )
      const told = async () =>
        (await db.selectFrom('webhook_events').select(['type', 'subject', 'data']).execute())
          .map(({ type, subject, data }) => `${type} ${subject} ${JSON.parse(String(data)).share}`)
          .sort()
      const spend = (amount: bigint, ledger = 0, wallets: readonly `budget:${string}`[] = ['budget:b1:0']) =>
        ledgers[ledger]?.settle([charge('acme', amount, { budgets: wallets })])
      for (const id of ['b1', 'b2']) await ledgers[0].change('p', [take(`lease_${id}`, `budget:${id}:0`, 1n)])
      await spend(49n)
      assert.deepEqual(await told(), [])
      await Promise.all([spend(1n), spend(1n, 1), spend(1n), spend(1n, 1)])
      assert.deepEqual(await told(), ['budget.threshold budget:b1 0.5'])
      await budgets.change('b1', (now) => ({ ...now, amount: 110n }), originOf())
      await spend(1n)
      assert.deepEqual(await told(), ['budget.threshold budget:b1 0.5'], 'not again for another amount')
      await spend(90n, 1)
      await spend(90n)
      const all = [
        'budget.exhausted budget:b1 1',
        'budget.threshold budget:b1 0.5',
        'budget.threshold budget:b1 0.8',
      ]
      assert.deepEqual(await told(), all)
      assert.deepEqual((await ledgers[0].check()).violations, [])
    })

    it('nothing of a charge that is revoked before it is known to be stored, and all of one beside it', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      await new SqlAccountStore(db).create('acme', PREPAID, originOf())
      const scope = { account: 'acme', key: null, user: null, tag: null }
      const budget = { id: 'b', scope, period: 'total', timezone: 'UTC', createdAt: 1 } as const
      await new SqlBudgetStore(db).create({ ...budget, amount: 100n, hard: true, soft: [0.5] }, originOf())
      const [budgets, at] = [['budget:b:0' as const], Date.now()]
      const revoked = (amount: bigint) => ({
        ...charge('acme', amount, { budgets }),
        kind: 'revoked' as const,
      })
      const told = () => db.selectFrom('webhook_events').select('type').execute()
      const spent = async () => (await ledger.wallets(budgets))[0]?.spent
      assert.deepEqual(await ledger.settle([revoked(90n), revoked(60n)]), ['written', 'written'])
      assert.deepEqual([await told(), await spent()], [[], 0n])
      await ledger.settle([revoked(90n), charge('acme', 40n, { budgets, at })])
      assert.deepEqual([await told(), await spent()], [[], 40n])
      await ledger.settle([charge('acme', 10n, { budgets, at }), revoked(90n)])
      assert.deepEqual([await told(), await spent()], [[{ type: 'budget.threshold' }], 50n])
      assert.deepEqual((await ledger.check()).violations, [])
    })
  })
}
