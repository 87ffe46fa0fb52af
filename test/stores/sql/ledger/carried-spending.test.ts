import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WalletId } from '../../../../lib/ledger/index.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { carrySpending } from '../../../../lib/stores/sql/ledger/carry-spending.ts'
import { charge, voidOf } from '../../../contracts/ledger-money.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const BUDGET: WalletId = 'budget:b1:1'

async function world(emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  const ledger = new SqlLedger(db)
  /** Carries the spending of a range of ids forward, and deletes its charges; how many those were. */
  const carried = (from: string, to: string) =>
    db.transaction().execute(async (trx) => {
      const count = await carrySpending(trx, { from, to })
      await trx.deleteFrom('charges').where('request_id', '>=', from).where('request_id', '<', to).execute()
      return count
    })
  return {
    ...{ db, ledger, carried },
    rows: async () => {
      const found = await db.selectFrom('carried_spending').selectAll().orderBy('wallet').execute()
      return found.map(({ wallet, amount, charges }) => `${wallet} ${amount} ${charges}`)
    },
    ids: async (table: 'charges' | 'voids') =>
      (await db.selectFrom(table).select('request_id').orderBy('request_id').execute()).map(
        ({ request_id }) => request_id,
      ),
    sound: async () => assert.deepEqual((await ledger.check()).violations, []),
  }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`spending that is carried forward: ${name}`, { skip }, () => {
    it('is what the charges of a range come to, less its voids, for each wallet that pays', async () => {
      const { ledger, carried, rows, ids, sound } = await world(emptied)
      const of = (requestId: string, amount: bigint, key: string | null = null, budgets?: WalletId[]) =>
        charge('acme', amount, { requestId, key, ...(budgets && { budgets }) })
      const undone = of('r3', 100n, 'k')
      await ledger.settle([
        of('r1', 1n, 'k'),
        of('r2', 20n, null, [BUDGET]),
        undone,
        charge('globex', 4000n, { requestId: 'r4' }),
        of('r5', 50_000n, 'k', [BUDGET]),
      ])
      await ledger.settle([voidOf(undone)])
      await ledger.settle([voidOf(charge('acme', 7n, { requestId: 'r35' }))])
      await sound()
      assert.equal(await carried('r1', 'r5'), 4, 'the end of a range is not in it')
      const first = ['account:acme 21 3', 'account:globex 4000 1', `${BUDGET} 20 0`, 'key:k 1 0']
      assert.deepEqual(await rows(), first)
      assert.deepEqual([await ids('charges'), await ids('voids')], [['r5'], []])
      await sound()
      assert.equal(await carried('r1', 'r5'), 0)
      assert.deepEqual(await rows(), first)
      assert.equal(await carried('r5', 'r6'), 1)
      assert.deepEqual(await rows(), [
        'account:acme 50021 4',
        'account:globex 4000 1',
        `${BUDGET} 50020 0`,
        'key:k 50001 0',
      ])
      await sound()
    })

    it('counts the void of a charge against the budgets of the charge, and keeps voids of other ranges', async () => {
      const { ledger, carried, rows, ids, sound } = await world(emptied)
      const undone = ['r1', 'r2', 'r3'].map((requestId) =>
        charge('acme', 9n, { requestId, key: 'k', budgets: [BUDGET] }),
      )
      await ledger.settle([...undone, charge('acme', 5n, { requestId: 'r25', budgets: [BUDGET] })])
      await ledger.settle(undone.map((each) => voidOf(each)))
      assert.equal(await carried('r2', 'r3'), 2)
      assert.deepEqual(await rows(), ['account:acme 5 2', `${BUDGET} 5 0`, 'key:k 0 0'])
      assert.deepEqual(await ids('voids'), ['r1', 'r3'])
      await sound()
    })

    it('of a budget goes with the wallet of its period, and that of others stays', async () => {
      const { db, ledger, carried, rows, sound } = await world(emptied)
      const other: WalletId = 'budget:b2:1'
      const spend = (requestId: string) =>
        ledger.settle([
          charge('acme', 3n, { requestId, budgets: [BUDGET, other] }),
          charge('budget;', 1n, { requestId: `${requestId}0` }),
        ])
      await spend('r1')
      await carried('r1', 'r2')
      assert.deepEqual(await rows(), [
        'account:acme 3 1',
        'account:budget; 1 1',
        `${BUDGET} 3 0`,
        `${other} 3 0`,
      ])
      await spend('r2')
      await db.deleteFrom('wallets').where('id', '=', BUDGET).execute()
      await carried('r2', 'r3')
      assert.deepEqual(await rows(), ['account:acme 6 2', 'account:budget; 2 2', `${other} 6 0`])
      await sound()
    })
  })
}
