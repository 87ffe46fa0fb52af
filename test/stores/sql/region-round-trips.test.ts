import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { budgetWallet } from '../../../lib/ledger/budgets/budget.ts'
import { accountWallet, type WalletId } from '../../../lib/ledger/index.ts'
import {
  type Database,
  openDatabase,
  SqlAccountStore,
  SqlBudgetStore,
} from '../../../lib/stores/sql/index.ts'
import { SqlHomeStore } from '../../../lib/stores/sql/regions/sql-home-store.ts'
import { originOf, PREPAID } from '../../contracts/account-money.ts'
import { fresh } from '../../contracts/ledger-money.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { type Wire, wireTo } from './postgres-wire.ts'

const NOW = Date.now()

describe('a home that may be far away is asked', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()
  let wire: Wire
  let db: Database
  before(async () => {
    wire = await wireTo(cleanUp, await postgresUrl())
    db = await openDatabase(wire.url, { poolSize: 1 })
    cleanUp.after(() => db.destroy())
    await new SqlAccountStore(db).create('acme', PREPAID, originOf())
    const scope = { account: 'acme', key: null, user: null, tag: null }
    const terms = { amount: 1000n, hard: true, soft: [0.5], period: 'day', timezone: 'UTC' } as const
    await new SqlBudgetStore(db).create({ id: 'b', scope, createdAt: 1, ...terms }, originOf())
    await exchange(BUDGET)
  })

  const BUDGET = budgetWallet('b', NOW)
  const exchange = (wallet: WalletId) => {
    const report = { wallet, seq: 1, received: 0n, returned: 0n, spent: 0n }
    return new SqlHomeStore(db).exchange(fresh('us'), [{ ...report, need: 1n, want: 1n }], NOW)
  }
  for (const [what, wallet, trips] of [
    ['for the share of an account, in one round trip', accountWallet('acme'), 1],
    ['for the share of a budget, in one more, which tells what the budget has reached', BUDGET, 2],
  ] as const)
    it(what, async () => {
      const [before, within] = [wire.roundTrips(), wire.withinTransactions()]
      assert.equal((await exchange(wallet)).length, 1)
      assert.deepEqual([wire.roundTrips() - before, wire.withinTransactions() - within], [trips, 0])
    })
})
