import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Client } from 'pg'
import { budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import { type BudgetPeriod, LeasePool, type WalletId } from '../../../../lib/ledger/index.ts'
import { Reservation } from '../../../../lib/ledger/pool/reservation.ts'
import { openDatabase, SqlAccountStore, SqlBudgetStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { charge, take } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { BACKENDS, type Backend, postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const DAY_MS = 86_400_000

/** A database with the accounts `acme` and `beside`, each with a budget of a thousand, `b1` and `b2`. */
async function world(t: TestContext, address: string) {
  const db = address.startsWith('sqlite:')
    ? await open(t, address)
    : await openDatabase(address, { poolSize: 4, lockTimeoutMs: 100 })
  if (!address.startsWith('sqlite:')) t.after(() => db.destroy())
  const ledger = new SqlLedger(db)
  const budgets = new SqlBudgetStore(db)
  for (const [id, account] of [
    ['b1', 'acme'],
    ['b2', 'beside'],
  ] as const) {
    await new SqlAccountStore(db).create(account, PREPAID, originOf())
    await ledger.deposit(account, 100_000n, 'opening', 1)
    const scope = { account, key: null, user: null, tag: null }
    const terms = { amount: 1000n, hard: true, soft: [0.5] }
    const when = { period: 'day', timezone: 'UTC', createdAt: 1 } as const
    assert.equal(await budgets.create({ id, scope, ...when, ...terms }, originOf()), 'created')
  }
  return {
    db,
    ledger,
    wallets: async () =>
      (await db.selectFrom('wallets').select('id').orderBy('id').execute()).map(({ id }) => id),
    sound: async () => assert.deepEqual((await ledger.check()).violations, []),
  }
}

function periodOf(budget: string, account: string, start: number): BudgetPeriod {
  const scope = { account, key: null, user: null, tag: null }
  return { budget, wallet: budgetWallet(budget, start), scope, refused: 'insufficient_balance', endsAt: null }
}

function onBoth(what: string, run: (t: TestContext, url: Backend['url']) => Promise<void>): void {
  for (const { name, url, skip } of BACKENDS) it(`${what}: ${name}`, { skip }, (t) => run(t, url))
}

describe('the wallets of budgets', () => {
  onBoth('of periods long past go when a new one is opened, and the check holds', async (t, url) => {
    const { db, ledger, wallets, sound } = await world(t, await url(t))
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
    const at = (days: number, budget = 'b1') => budgetWallet(budget, today - days * DAY_MS)
    // As many newer ones as stay in any case, with that of 90 days ago.
    const newer = Array.from({ length: 9 }, (_, i) => at(80 + i))
    const empty = { limited: 1, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
    await db
      .insertInto('wallets')
      .values(newer.map((id) => ({ id, ...empty })))
      .execute()
    // The period of one never ends; something is still leased of another.
    const kept = [at(90), at(200, 'b2'), budgetWallet('b1', 0), at(300)]
    for (const [i, wallet] of [at(101), at(150), ...kept].entries()) {
      await ledger.change('p', [take(`lease-${i}`, wallet, 10n)])
      await ledger.settle([
        charge(wallet.startsWith('budget:b1') ? 'acme' : 'beside', 7n, { budgets: [wallet] }),
      ])
      const amount = wallet === at(300) ? 3n : 10n
      await ledger.change('p', [{ lease: `lease-${i}`, wallet, seq: 2, change: { kind: 'give', amount } }])
    }
    // Opening the last of these has deleted those before it already.
    await ledger.change('p', [take('now', at(0), 10n)])
    const left = (await wallets()).filter((id) => id.startsWith('budget:') && !newer.includes(id))
    assert.deepEqual(left, [...kept, at(0)].sort())
    assert.equal((await wallets()).filter((id) => newer.includes(id)).length, newer.length)
    const notices = await db.selectFrom('budget_notices').select('wallet').distinct().execute()
    assert.deepEqual(notices.map(({ wallet }) => wallet).sort(), left)
    await sound()
    await db.deleteFrom('wallets').where('id', '=', at(90)).execute()
    assert.match(String((await ledger.check()).violations), /budget:b1:\d+" has entries but no row/)
  })

  onBoth('of the newest ten periods stay, however far the clock of a process leaps', async (t, url) => {
    const { ledger, sound } = await world(t, await url(t))
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
    const [own, beside] = [budgetWallet('b1', today), budgetWallet('b2', today)]
    for (const [wallet, account] of [
      [own, 'acme'],
      [beside, 'beside'],
    ] as const)
      await ledger.settle([charge(account, 900n, { budgets: [wallet] })])
    t.mock.timers.enable({ apis: ['Date'], now: today + 1000 * DAY_MS })
    for (let days = 1000; days < 1009; days++) {
      const wallet = budgetWallet('b1', today + days * DAY_MS)
      await ledger.change('p', [take(`ahead-${days}`, wallet, 10n)])
    }
    t.mock.timers.reset()
    const spent = (await ledger.wallets([own, beside])).map((each) => each.spent)
    assert.deepEqual(spent, [900n, 900n])
    await sound()
  })
})

describe('the row of a budget that another connection has locked', { skip: WITHOUT_POSTGRES }, () => {
  it('holds up the calls that it counts, and no other', async (t) => {
    const address = await postgresUrl()
    const { ledger, sound } = await world(t, address)
    const pool = new LeasePool({ ledger, admissionMs: 3000 })
    const operator = new Client({ connectionString: address })
    await operator.connect()
    t.after(() => operator.end())
    await operator.query('begin')
    await operator.query("select 1 from budgets where id = 'b1' for update")
    const reserve = (account: string, budgets: readonly BudgetPeriod[]) =>
      pool.reserve({ account, key: null, amount: 1n, budgets })
    const waits = reserve('acme', [periodOf('b1', 'acme', 1)])
    const startedAt = performance.now()
    for (let i = 0; i < 10; i++) {
      const budgets = [periodOf('b2', 'beside', 2 + i)]
      const [first, second] = await Promise.all([reserve('beside', budgets), reserve('acme', [])])
      for (const held of [first, second]) {
        assert.ok(held instanceof Reservation)
        held.release()
      }
    }
    assert.ok(performance.now() - startedAt < 2000, `${performance.now() - startedAt} ms`)
    // So does a charge whose wallet is not there.
    const wallets: WalletId[] = [budgetWallet('b1', 77)]
    const settling = ledger.settle([charge('beside', 1n), charge('acme', 1n, { budgets: wallets })])
    await assert.rejects(settling, { name: 'WalletsLocked', wallets: new Set(['account:acme']) })
    assert.equal(pool.away, false)
    await operator.query('rollback')
    const held = await waits
    assert.ok(held instanceof Reservation)
    held.release()
    await pool.close()
    await sound()
  })
})
