import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import type { WalletId } from '../../../../lib/ledger/index.ts'
import { SqlAccountStore, SqlBudgetStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { openBudgetWallets } from '../../../../lib/stores/sql/ledger/budget-wallets.ts'
import { settleAll } from '../../../../lib/stores/sql/ledger/settle.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { charge, voidOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { interrupted } from '../support/interrupted-database.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

describe('calls that another process settles meanwhile', { skip: WITHOUT_POSTGRES }, () => {
  it('are read anew, and charged once', async (t) => {
    const url = await postgresUrl()
    const [own, others] = [await open(t, url), await open(t, url)]
    const once = charge('acme', 30n, { key: 'k' })
    const undone = voidOf(charge('acme', 5n))
    let times = 0
    const { db, seen } = interrupted(own, async () => {
      if (times++ === 0) await new SqlLedger(others).settle([once])
    })
    assert.deepEqual(await settleAll(db, [undone, once]), ['written', 'known'])
    assert.equal(seen.transactions, 2)
    const ledger = new SqlLedger(own)
    const wallets = await ledger.wallets(['account:acme', 'key:k'])
    assert.deepEqual(
      wallets.map(({ spent }) => spent),
      [30n, 30n],
    )
    const { charges, violations } = await ledger.check()
    assert.deepEqual([charges, violations], [1, []])
    assert.deepEqual(await settleAll(own, [undone]), ['known'])
  })

  it('are tried five times, and nothing is written where it never fits', async (t) => {
    const own = await open(t, await postgresUrl())
    const rows = charge('acme', 30n, { key: 'k' })
    // As if somebody had written the charge each time and taken it back.
    const { db, seen } = interrupted(own, () => Promise.reject(Object.assign(new Error(), { code: '22012' })))
    const undone = voidOf(charge('acme', 5n))
    await assert.rejects(settleAll(db, [undone, rows]), { name: 'RowsHaveChanged' })
    assert.equal(seen.transactions, 5)
    const ledger = new SqlLedger(own)
    assert.deepEqual(await ledger.wallets(['account:acme']), [])
    assert.equal((await ledger.check()).charges, 0)
  })

  it('are not tried again where something else fails', async (t) => {
    const own = await open(t, await postgresUrl())
    const { db, seen } = interrupted(own, () => Promise.reject(new Error('on purpose')))
    await assert.rejects(settleAll(db, [voidOf(charge('acme', 5n)), charge('acme', 1n)]), /on purpose/)
    assert.equal(seen.transactions, 1)
    assert.deepEqual(await new SqlLedger(own).wallets(['account:acme']), [])
  })
})

describe('wallets of budgets of which others open one after the other meanwhile', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('are open at once, and return what they have reached', async (t) => {
    const url = await postgresUrl()
    const [own, others] = [await open(t, url), await open(t, url)]
    const scope = { account: 'acme', key: null, user: null, tag: null }
    const budget = { id: 'b', scope, period: 'day', timezone: 'UTC', createdAt: 1 } as const
    await new SqlAccountStore(own).create('acme', PREPAID, originOf())
    await new SqlBudgetStore(own).create({ ...budget, amount: 10n, hard: true, soft: [0.5] }, originOf())
    const wallets = Array.from({ length: 10 }, (_, day) => budgetWallet('b', day))
    let opened = 0
    const { db, seen } = interrupted(own, () => openBudgetWallets(others, [wallets[opened++] as WalletId]))
    await openBudgetWallets(db, wallets)
    assert.equal(seen.transactions, 1)
    const ledger = new SqlLedger(own)
    const funds = (await ledger.wallets(wallets)).map((wallet) => wallet.funds)
    assert.deepEqual(funds, Array(10).fill(10n))
    await ledger.settle([charge('acme', 5n, { budgets: wallets })])
    const told = await own.selectFrom('webhook_events').select('id').execute()
    assert.equal(told.length, 10)
  })
})
