import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Hold } from '../../../../lib/ledger/hold.ts'
import { writeTogether } from '../../../../lib/stores/sql/driver/write-together.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import {
  chargeHold,
  openHold,
  refusalOf,
  releaseHold,
} from '../../../../lib/stores/sql/ledger/sql-ledger-holds.ts'
import { UsageTally } from '../../../../lib/stores/sql/usage/usage-tally.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const HOLD: Hold = { id: 'video', account: 'acme', key: 'k', amount: 40n }

/** An account and a key with a hundred each, and what becomes of money that is held of them. */
async function opened(emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  const ledger = new SqlLedger(db)
  await ledger.deposit('acme', 100n, 'opening', 1)
  await ledger.setLimit('key:k', { limited: true, quota: 100n })
  const standing = async (id: string) => {
    const held = await db.selectFrom('holds').select('amount').where('request_id', '=', id).execute()
    const charges = await db.selectFrom('charges').select('amount').where('request_id', '=', id).execute()
    return { held: held[0]?.amount ?? 0n, budgets: [], charged: charges.length > 0 }
  }
  return {
    ledger,
    judge: async (hold: Hold) => (await refusalOf(db, hold))?.refused,
    hold: async (hold: Hold) => assert.equal(await writeTogether(db, openHold(hold)), true),
    charge: async (amount: bigint, { id, account, key } = HOLD) => {
      const usage = new UsageTally()
      const given = { requestId: id, account, key, amount, at: 7, basis: '[]' }
      const writes = chargeHold(await standing(id), given, usage)
      assert.equal(await writeTogether(db, [...writes, usage.write()]), true)
    },
    release: async ({ id: requestId, account, key }: Hold) => {
      const writes = releaseHold(await standing(requestId), { requestId, account, key })
      assert.equal(await writeTogether(db, writes), true)
    },
    /** Spent, leased and overrun of account and key. */
    figures: async () =>
      (await ledger.wallets(['account:acme', 'key:k'])).map(({ spent, leased, overrun }) => [
        spent,
        leased,
        overrun,
      ]),
    charges: async () => (await ledger.check()).charges,
    rows: async () => (await sql<{ n: bigint }>`select count(*) as n from holds`.execute(db)).rows[0]?.n,
    sound: async () => assert.deepEqual((await ledger.check()).violations, []),
  }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`money held in ${name}`, { skip }, () => {
    it('is judged by the wallets that pay', async () => {
      const { judge, ledger } = await opened(emptied)
      assert.equal(await judge({ ...HOLD, amount: 100n }), undefined)
      assert.equal(await judge({ ...HOLD, amount: 101n }), 'key_quota_exhausted')
      assert.equal(await judge({ ...HOLD, key: null, amount: 101n }), 'insufficient_balance')
      assert.equal(await judge({ ...HOLD, account: 'nobody', key: null }), 'insufficient_balance')
      assert.equal(await judge({ ...HOLD, key: 'none' }), undefined)
      assert.equal(await judge({ ...HOLD, key: 'none', amount: 101n }), 'insufficient_balance')
      assert.deepEqual(await ledger.wallets(['account:nobody', 'key:none']), [])
    })

    it('is held on both wallets, and goes back once', async () => {
      const { hold, release, figures, rows, sound } = await opened(emptied)
      await hold(HOLD)
      assert.deepEqual(await figures(), [
        [0n, 40n, 0n],
        [0n, 40n, 0n],
      ])
      await sound()
      for (let times = 0; times < 2; times++) await release(HOLD)
      assert.deepEqual(await figures(), [
        [0n, 0n, 0n],
        [0n, 0n, 0n],
      ])
      assert.equal(await rows(), 0n)
      await sound()
    })

    it('of nothing is not kept', async () => {
      const { hold, rows, sound } = await opened(emptied)
      await hold({ ...HOLD, amount: 0n })
      assert.equal(await rows(), 0n)
      await sound()
    })

    it('is charged what it cost, once, beyond what was held as an overrun', async () => {
      const { hold, charge, figures, charges, rows, sound } = await opened(emptied)
      await hold(HOLD)
      for (const cost of [45n, 7n]) await charge(cost)
      assert.deepEqual(await figures(), [
        [45n, 0n, 5n],
        [45n, 0n, 5n],
      ])
      assert.deepEqual([await charges(), await rows()], [1, 0n])
      await sound()
    })

    it('is charged for nothing where it cost nothing, and is free again', async () => {
      const { hold, charge, figures, charges, rows } = await opened(emptied)
      await hold(HOLD)
      await charge(0n)
      assert.deepEqual(await figures(), [
        [0n, 0n, 0n],
        [0n, 0n, 0n],
      ])
      assert.deepEqual([await charges(), await rows()], [1, 0n])
    })

    it('is no charge at all where nothing was held and nothing was used', async () => {
      const { charge, charges, ledger } = await opened(emptied)
      await charge(0n, { ...HOLD, account: 'nobody', key: null })
      assert.equal(await charges(), 0)
      assert.deepEqual(await ledger.wallets(['account:nobody']), [])
    })

    it('opens the wallets of what is charged, without limits, where they are not there', async () => {
      const { charge, ledger, sound } = await opened(emptied)
      await charge(6n, { ...HOLD, account: 'globex', key: 'other' })
      const paying = await ledger.wallets(['account:globex', 'key:other'])
      assert.deepEqual(
        paying.map(({ limited, spent, leased, overrun }) => [limited, spent, leased, overrun]),
        [
          [false, 6n, 0n, 6n],
          [false, 6n, 0n, 6n],
        ],
      )
      await sound()
    })

    it('goes back whole where its request is charged already', async () => {
      const { hold, charge: chargeHold, figures, charges, ledger, sound } = await opened(emptied)
      await hold(HOLD)
      await ledger.settle([charge('acme', 3n, { requestId: 'video', key: 'k' })])
      await chargeHold(9n)
      assert.deepEqual(await figures(), [
        [3n, 0n, 0n],
        [3n, 0n, 0n],
      ])
      assert.equal(await charges(), 1)
      await sound()
    })
  })
}
