import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_AMOUNT } from '../../../../lib/core/catalog/money.ts'
import { accountWallet, keyWallet } from '../../../../lib/ledger/index.ts'
import { writeTogether } from '../../../../lib/stores/sql/driver/write-together.ts'
import { openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { depositWrites } from '../../../../lib/stores/sql/ledger/sql-ledger-admin.ts'
import { chargeHold } from '../../../../lib/stores/sql/ledger/sql-ledger-holds.ts'
import { UsageTally } from '../../../../lib/stores/sql/usage/usage-tally.ts'
import { charge, draw, figuresOf, take } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS, postgresUrl } from '../support/postgres-database.ts'

const EDGES = [-MAX_AMOUNT, -MAX_AMOUNT + 1n, -1n, 0n, 1n, MAX_AMOUNT - 1n, MAX_AMOUNT]

async function opened(emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  return { db, ledger: new SqlLedger(db) }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`figures at the ends of 64 bits: ${name}`, { skip }, () => {
    it('take every deposit whose sum fits, and refuse every other', async () => {
      const { ledger } = await opened(emptied)
      for (const funds of EDGES)
        for (const amount of EDGES) {
          const account = `${funds} ${amount}`
          await ledger.deposit(account, funds, 'opening', 1)
          const sum = funds + amount
          const fits = sum >= -MAX_AMOUNT && sum <= MAX_AMOUNT
          const depositing = ledger.deposit(account, amount, 'more', 2)
          if (fits) assert.equal(await depositing, 'deposited', account)
          else await assert.rejects(depositing, RangeError, account)
          const standing = await figuresOf(ledger, accountWallet(account))
          assert.deepEqual(standing, [fits ? sum : funds, 0n, 0n, 0n], account)
        }
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('take every charge whose sums fit, and refuse every other whole', async () => {
      const { db, ledger } = await opened(emptied)
      for (const [i, [spent, overrun, cost, fits]] of (
        [
          [0n, 0n, MAX_AMOUNT, true],
          [1n, 0n, MAX_AMOUNT - 1n, true],
          [MAX_AMOUNT - 5n, 0n, 5n, true],
          [MAX_AMOUNT - 5n, 0n, 6n, false],
          [MAX_AMOUNT, 0n, 0n, true],
          [MAX_AMOUNT, 0n, 1n, false],
          [0n, MAX_AMOUNT - 5n, 5n, true],
          [0n, MAX_AMOUNT - 5n, 6n, false],
        ] as const
      ).entries()) {
        const account = `acme ${i}`
        const row = { id: accountWallet(account), limited: 0, funds: 0n, spent, leased: 0n, overrun }
        await db.insertInto('wallets').values(row).execute()
        const beside = `beside ${i}`
        const other = { id: accountWallet(beside), limited: 0, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
        await db.insertInto('wallets').values(other).execute()
        const draws = overrun > 0n ? [draw('none', accountWallet(account), cost)] : []
        const settling = ledger.settle([charge(beside, 3n), charge(account, cost, { draws })])
        if (fits) assert.deepEqual(await settling, ['written', 'written'], account)
        else await assert.rejects(settling, RangeError, account)
        const standing = await figuresOf(ledger, accountWallet(account))
        assert.deepEqual(
          standing,
          fits ? [0n, spent + cost, 0n, overrun > 0n ? overrun + cost : 0n] : [0n, spent, 0n, overrun],
          account,
        )
        assert.equal((await figuresOf(ledger, accountWallet(beside)))[1], fits ? 3n : 0n)
      }
    })
  })

  describe(`the charge of a hold at the ends of 64 bits: ${name}`, { skip }, () => {
    it('is not written where the overrun or the sum would not fit, and nothing of it is', async () => {
      const { db, ledger } = await opened(emptied)
      for (const [i, [spent, overrun, cost, fits]] of (
        [
          [0n, MAX_AMOUNT - 5n, 12n, true],
          [0n, MAX_AMOUNT - 5n, 13n, false],
          [MAX_AMOUNT - 5n, 0n, 5n, true],
          [MAX_AMOUNT - 5n, 0n, 6n, false],
        ] as const
      ).entries()) {
        const [account, requestId] = [`acme ${i}`, `req_${i}`]
        const row = { id: accountWallet(account), limited: 0, funds: 0n, spent, leased: 7n, overrun }
        await db.insertInto('wallets').values(row).execute()
        await db
          .insertInto('holds')
          .values({ request_id: requestId, account, key: null, amount: 7n })
          .execute()
        const usage = new UsageTally()
        const given = { requestId, account, key: null, amount: cost, at: 7, basis: '[]' }
        const writes = chargeHold({ held: 7n, budgets: [], charged: false }, given, usage)
        assert.equal(await writeTogether(db, [...writes, usage.write()]), fits, account)
        const over = cost > 7n ? cost - 7n : 0n
        assert.deepEqual(
          await figuresOf(ledger, accountWallet(account)),
          fits ? [0n, spent + cost, 0n, overrun + over] : [0n, spent, 7n, overrun],
          account,
        )
        const holds = await db.selectFrom('holds').select('amount').where('account', '=', account).execute()
        assert.equal(holds.length, fits ? 0 : 1)
      }
    })
  })

  describe(`movements that rely on what was read: ${name}`, { skip }, () => {
    it('are written while the funds are so, and not at all once they are others', async () => {
      const { db, ledger } = await opened(emptied)
      await ledger.deposit('acme', 70n, 'opening', 1)
      await ledger.deposit('beside', 69n, 'opening', 1)
      const given = (reference: string, amount: bigint) => ({ reference, amount, at: 2, reason: 'a gift' })
      const moved = (funds: bigint | null, ...all: ReturnType<typeof given>[]) =>
        writeTogether(db, depositWrites('acme', all, funds))
      assert.equal(await moved(69n, given('a', 1n), given('b', 2n)), false)
      assert.equal(await moved(71n, given('a', 1n)), false)
      assert.deepEqual(await figuresOf(ledger, accountWallet('acme')), [70n, 0n, 0n, 0n])
      assert.equal(await moved(70n, given('a', 1n), given('b', -2n)), true)
      assert.equal(await moved(null, given('c', 5n)), true)
      assert.equal(await moved(74n, given('a', 1n)), false, 'a reference counts once')
      assert.equal(await moved(74n), true, 'nothing is written of nothing')
      assert.deepEqual(await figuresOf(ledger, accountWallet('acme')), [74n, 0n, 0n, 0n])
      assert.deepEqual(await figuresOf(ledger, accountWallet('beside')), [69n, 0n, 0n, 0n])
      assert.deepEqual((await ledger.check()).violations, [])
    })
  })

  describe(`many wallets at once: ${name}`, { skip }, () => {
    it('are stated in the order asked for, however many a statement reads', async () => {
      const { db, ledger } = await opened(emptied)
      const keys = Array.from({ length: 2001 }, (_, i) => keyWallet(`k${i}`))
      const figures = { limited: 1, spent: 0n, leased: 0n, overrun: 0n }
      for (let i = 0; i < keys.length; i += 500)
        await db
          .insertInto('wallets')
          .values(keys.slice(i, i + 500).map((id, n) => ({ id, funds: BigInt(i + n), ...figures })))
          .execute()
      const asked = keys.toReversed()
      assert.deepEqual(
        (await ledger.wallets(asked)).map(({ wallet }) => wallet),
        asked,
      )
    })

    it('of a batch are changed each for itself where one of them is not there', async () => {
      const { ledger } = await opened(emptied)
      await ledger.deposit('acme', 10n, 'opening', 1)
      const wallets = [accountWallet('nobody'), accountWallet('acme'), keyWallet('none')] as const
      const answers = await ledger.change(
        'p',
        wallets.map((wallet) => take(`of ${wallet}`, wallet, 4n)),
      )
      assert.deepEqual(
        answers.map(({ moved, state }) => [moved, state?.leased]),
        [
          [0n, undefined],
          [4n, 4n],
          [0n, undefined],
        ],
      )
    })
  })
}

describe('how many settlements a ledger takes at a time', { skip: WITHOUT_POSTGRES }, () => {
  it('leaves a connection to others where there are two, and is five at most', async (t) => {
    const url = await postgresUrl()
    for (const [poolSize, expected] of [
      [1, 1],
      [2, 1],
      [3, 2],
      [6, 5],
      [20, 5],
    ] as const) {
      const db = await openDatabase(url, { poolSize })
      t.after(() => db.destroy())
      assert.equal(new SqlLedger(db).settlesAtOnce, expected, `${poolSize} connections`)
    }
  })
})
