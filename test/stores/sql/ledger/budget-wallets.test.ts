import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import {
  type Database,
  SqlAccountStore,
  SqlBudgetStore,
  SqlLedger,
} from '../../../../lib/stores/sql/index.ts'
import { openBudgetWallets } from '../../../../lib/stores/sql/ledger/budget-wallets.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { BACKENDS, type Backend } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const DAY_MS = 86_400_000
const TERMS = { amount: 100n, hard: true, soft: [0.5] }
const [B1, B2] = [budgetWallet('b1', 1), budgetWallet('b2', 1)]

/** Two budgets, and a handle that does something once it has read their terms, the first time. */
async function world(t: TestContext, url: Backend['url'], meanwhile: (budgets: SqlBudgetStore) => unknown) {
  const address = await url(t)
  const [db, other] = [await open(t, address), await open(t, address)]
  await new SqlAccountStore(db).create('acme', PREPAID, originOf())
  const budgets = new SqlBudgetStore(other)
  const scope = { account: 'acme', key: null, user: null, tag: null }
  for (const id of ['b1', 'b2']) {
    const when = { period: 'day', timezone: 'UTC', createdAt: 1 } as const
    await budgets.create({ id, scope, ...when, ...TERMS }, originOf())
  }
  let read = 0
  const interrupted: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      const isOfTerms = result.rows.some((row) => 'timezone' in row)
      if (isOfTerms && ++read === 1) await meanwhile(budgets)
      return result
    },
  }
  return {
    db: db.withPlugin(interrupted) as Database,
    figures: async () =>
      (await new SqlLedger(db).wallets([B1, B2])).map(({ limited, funds }) => [limited, funds]),
    async notices() {
      const found = db
        .selectFrom('budget_notices')
        .select(['wallet', 'amount'])
        .where('wallet', 'in', [B1, B2])
      return (await found.orderBy('amount').execute()).map(({ wallet, amount }) => `${wallet} ${amount}`)
    },
    read: () => read,
  }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a budget whose terms change while its wallet is opened: ${name}`, { skip }, () => {
    it('has a wallet of the later terms, and sends events by these', async (t) => {
      const { db, figures, notices, read } = await world(t, url, (budgets) =>
        budgets.change('b1', (now) => ({ ...now, amount: 300n, hard: false }), originOf()),
      )
      await openBudgetWallets(db, [B1, B2])
      assert.deepEqual(await figures(), [
        [false, 300n],
        [true, 100n],
      ])
      assert.deepEqual(await notices(), [`${B2} 50`, `${B2} 100`, `${B1} 150`, `${B1} 300`])
      assert.equal(read(), 2)
    })

    it('has a wallet that only counts where it was deleted', async (t) => {
      const { db, figures, notices } = await world(t, url, (budgets) => budgets.delete('b2', originOf()))
      await openBudgetWallets(db, [B1, B2])
      assert.deepEqual(await figures(), [
        [true, 100n],
        [false, 0n],
      ])
      assert.deepEqual(await notices(), [`${B1} 50`, `${B1} 100`])
    })
  })

  describe(`the wallets of budgets that are opened twice at once: ${name}`, { skip }, () => {
    it('are those that were opened first, for every process', async (t) => {
      const { db, figures, notices } = await world(t, url, () => {})
      await Promise.all(Array.from({ length: 8 }, () => openBudgetWallets(db, [B1, B2, B1])))
      await db.updateTable('wallets').set({ spent: 7n }).where('id', '=', B1).execute()
      await openBudgetWallets(db, [B1, B2])
      const [spent] = await db.selectFrom('wallets').select('spent').where('id', '=', B1).execute()
      assert.equal(spent?.spent, 7n)
      assert.deepEqual(await figures(), [
        [true, 100n],
        [true, 100n],
      ])
      assert.equal((await notices()).length, 4)
    })
  })

  describe(`the wallets of many budgets, as at midnight: ${name}`, { skip }, () => {
    it('are opened by as few statements as one, and those long past are found', async (t) => {
      const db = await open(t, await url(t))
      let statements = 0
      const counted = db.withPlugin({
        transformQuery: ({ node }) => node,
        async transformResult({ result }) {
          statements++
          return result
        },
      }) as Database
      const terms = {
        account: 'acme',
        key: null,
        user: null,
        tag: null,
        amount: 100n,
        hard: 1,
        soft: '[0.5]',
      }
      const when = { period: 'day', timezone: 'UTC', created_at: 1n, version: 1n, deleted: 0 } as const
      const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS
      const past = midnight - 200 * DAY_MS
      const opening = async (count: number) => {
        const ids = Array.from({ length: count }, (_, i) => `b_${count}_${i}`)
        const insert = db.insertInto('budgets').values(ids.map((id) => ({ id, ...terms, ...when })))
        await insert.execute()
        // The newest ten stay.
        const days = [past, ...Array.from({ length: 10 }, (_, i) => midnight - (i + 1) * DAY_MS)]
        await openBudgetWallets(
          db,
          ids.flatMap((id) => days.map((start) => budgetWallet(id, start))),
        )
        statements = 0
        const wallets = ids.map((id) => budgetWallet(id, midnight))
        await openBudgetWallets(counted, wallets)
        const taken = statements
        const figures = await new SqlLedger(db).wallets(wallets)
        assert.deepEqual(
          figures.map(({ wallet, limited, funds }) => [wallet, limited, funds]),
          wallets.map((wallet) => [wallet, true, 100n]),
        )
        const told = db.selectFrom('budget_notices').select('id').where('wallet', 'in', wallets)
        assert.equal((await told.execute()).length, 2 * count)
        const old = ids.map((id) => budgetWallet(id, past))
        assert.deepEqual(await new SqlLedger(db).wallets(old), [])
        return taken
      }
      assert.equal(await opening(300), await opening(1))
    })
  })
}
