import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { accountWallet, keyWallet, type Settlement } from '../../../../lib/ledger/index.ts'
import {
  type OpenDatabaseOptions,
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
} from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import {
  charge,
  draw,
  figuresOf,
  fresh,
  keyOf,
  leaseOf,
  prepaid,
  take,
  voidOf,
} from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { wireTo } from '../support/postgres-wire.ts'
import { PATIENT } from '../support/temporary-database.ts'

async function openLedger(t: TestContext, options: OpenDatabaseOptions = {}) {
  const url = await postgresUrl()
  const { url: through, roundTrips, holdBack } = await wireTo(t, url)
  const db = await openDatabase(through, { poolSize: 1, ...options })
  t.after(() => db.destroy())
  const ledger = new SqlLedger(db)
  const settle = async (...settlements: Settlement[]) => {
    const before = roundTrips()
    const results = await ledger.settle(settlements)
    return { results: [...results], trips: roundTrips() - before }
  }
  return { url, db, ledger, settle, holdBack }
}

describe('settlements on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('that are all as usual take one round trip, with their claims and log entries', async (t) => {
    const { db, ledger, settle } = await openLedger(t)
    const [account, key] = [await prepaid(ledger, 1000n), await keyOf(ledger, 1000n)]
    const wallets = [accountWallet(account), keyWallet(key)] as const
    const leases = [await leaseOf(ledger, wallets[0], 100n), await leaseOf(ledger, wallets[1], 100n)] as const
    const claims = new SqlIdempotencyStore(db)
    const calls = new SqlCallStore(db)
    for (let round = 0; round < 3; round++) {
      const batch = await Promise.all(
        ['', '\0 ␀ ␀0 \\ " {,} né 😀', null].map(async (response_body, i) => {
          const entry = entryAt(Date.now() + i, {
            account,
            key,
            response_body,
            client_request_id: response_body,
          })
          const claim = { id: fresh('\0␀{,}"'), owner: entry.id }
          await claims.claim({ ...claim, fingerprint: 'f', now: 1, leaseUntil: Date.now() + 60_000 })
          const draws = [draw(leases[0], wallets[0], 6n), draw(leases[1], wallets[1], 5n)]
          const members = {
            requestId: entry.id,
            key,
            draws,
            entry,
            claim: { ...claim, keepUntil: Date.now() + 90_000 },
          }
          return charge(account, 7n, members)
        }),
      )
      assert.deepEqual(await settle(...batch), { results: ['written', 'written', 'written'], trips: 1 })
      for (const { entry, claim } of batch) {
        assert.deepEqual(await calls.find(entry!.id), entry)
        const again = {
          id: claim!.id,
          owner: 'another',
          fingerprint: 'f',
          now: Date.now(),
          leaseUntil: Date.now(),
        }
        assert.equal((await claims.claim(again))?.state, 'completed')
      }
      const n = BigInt(batch.length * (round + 1))
      assert.deepEqual(await figuresOf(ledger, wallets[0]), [1000n, 7n * n, 100n - 6n * n, 0n])
      assert.deepEqual(await figuresOf(ledger, wallets[1]), [1000n, 7n * n, 100n - 5n * n, 0n])
    }
    const { violations, charges, spent } = await ledger.check()
    assert.deepEqual({ violations, charges, spent }, { violations: [], charges: 9, spent: 63n })
  })

  it('of which one is not are looked at one by one, and the next take one round trip again', async (t) => {
    const { ledger, settle } = await openLedger(t)
    const account = await prepaid(ledger, 1000n)
    const lease = await leaseOf(ledger, accountWallet(account), 10n)
    const usual = () => charge(account, 1n)
    const known = usual()
    const voided = usual()
    assert.equal((await settle(known)).trips, 1)
    assert.deepEqual((await settle(voidOf(voided))).results, ['written'])
    const unusual: [Settlement, string][] = [
      [known, 'known'],
      [voided, 'known'],
      [charge(account, 1n, { draws: [draw(lease, accountWallet(account), 11n)] }), 'written'],
      [charge(account, 1n, { draws: [draw('nobody', accountWallet(account), 1n)] }), 'written'],
      [charge(account, 1n, { key: fresh('key') }), 'written'],
      [charge(account, 1n, { claim: { id: 'gone', owner: 'o', keepUntil: 1 } }), 'fenced'],
    ]
    for (const [settlement, result] of unusual) {
      const { results, trips } = await settle(usual(), settlement, usual())
      assert.deepEqual(results, ['written', result, 'written'])
      assert.ok(trips > 1, `${trips} round trips`)
      assert.deepEqual(await settle(usual()), { results: ['written'], trips: 1 })
    }
    const { violations, charges, spent } = await ledger.check()
    assert.deepEqual({ violations, charges, spent }, { violations: [], charges: 22, spent: 22n })
    assert.deepEqual(await figuresOf(ledger, accountWallet(account)), [1000n, 22n, 0n, 2n])
  })

  it('with very long log entries are written whole', async (t) => {
    const { db, ledger, settle } = await openLedger(t)
    const account = await prepaid(ledger, 1000n)
    const calls = new SqlCallStore(db)
    for (const length of [500_000, 2_500_000]) {
      const entries = [1, 2].map((i) =>
        entryAt(Date.now() + i, { account, response_body: 'né'.repeat(length / 2) }),
      )
      const { results, trips } = await settle(
        ...entries.map((entry) => charge(account, 1n, { requestId: entry.id, entry })),
      )
      assert.deepEqual(results, ['written', 'written'])
      assert.equal(trips, 1)
      for (const entry of entries) assert.deepEqual(await calls.find(entry.id), entry)
    }
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('that wait too long for a lock fail and say whose, leave nothing behind and hold no lock', async (t) => {
    const { url, ledger, settle } = await openLedger(t, { lockTimeoutMs: 250 })
    const other = await openDatabase(url, PATIENT)
    t.after(() => other.destroy())
    const [free, locked] = [await prepaid(ledger, 1000n), await prepaid(ledger, 1000n)]
    const batch = [charge(free, 5n), charge(locked, 5n)]
    await other.transaction().execute(async (trx) => {
      await trx
        .selectFrom('wallets')
        .selectAll()
        .where('id', '=', accountWallet(locked))
        .forUpdate()
        .execute()
      const wallets = new Set([accountWallet(locked)])
      await assert.rejects(settle(...batch), { name: 'WalletsLocked', wallets })
      assert.deepEqual((await settle(charge(free, 1n))).results, ['written'])
    })
    assert.deepEqual(await settle(...batch), { results: ['written', 'written'], trips: 1 })
    assert.deepEqual(await figuresOf(ledger, accountWallet(free)), [1000n, 6n, 0n, 0n])
    assert.deepEqual((await ledger.check()).violations, [])
  })

  it('that have not arrived whole, because their process stands still, hold up no other', async (t) => {
    const { url, ledger, settle, holdBack } = await openLedger(t)
    const other = await openDatabase(url, PATIENT)
    t.after(() => other.destroy())
    const account = await prepaid(ledger, 1000n)
    await settle(charge(account, 1n))
    const goesOn = holdBack(200)
    const late = settle(charge(account, 5n))
    const goOn = await goesOn
    assert.deepEqual([...(await new SqlLedger(other).settle([charge(account, 3n)]))], ['written'])
    goOn()
    assert.deepEqual(await late, { results: ['written'], trips: 1 })
    assert.deepEqual(await figuresOf(ledger, accountWallet(account)), [1000n, 9n, 0n, 0n])
  })

  for (const table of ['wallets', 'idempotency', 'leases'] as const) {
    it(`lock rows of ${table} in the order of their ids, as all others do`, async (t) => {
      const { url, db, ledger, settle } = await openLedger(t)
      const other = await openDatabase(url, PATIENT)
      t.after(() => other.destroy())
      const claims = new SqlIdempotencyStore(db)
      const batch: Settlement[] = []
      // In the table the last comes first.
      for (const name of ['c', 'b', 'a']) {
        const wallet = accountWallet(name)
        await ledger.deposit(name, 1000n, 'opening', 1)
        await ledger.change('p', [take(name, wallet, 10n)])
        const claim = { id: name, owner: 'o' }
        await claims.claim({ ...claim, fingerprint: 'f', now: 1, leaseUntil: Date.now() + 60_000 })
        const draws = [draw(name, wallet, 4n)]
        batch.push(charge(name, 5n, { draws, claim: { ...claim, keepUntil: Date.now() } }))
      }
      const settled = await other.transaction().execute(async (trx) => {
        const lock = (id: string) =>
          sql`select from ${sql.table(table)} where id = ${id} for update`.execute(trx)
        const [first, last] = table === 'wallets' ? ['account:a', 'account:c'] : ['a', 'c']
        await lock(first!)
        const settling = settle(...batch)
        const waiting = sql<{ n: bigint }>`select count(*) as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`
        while ((await waiting.execute(trx)).rows[0]?.n !== 1n) await sleep(5)
        await lock(last!)
        return { settling }
      })
      assert.deepEqual(await settled.settling, { results: ['written', 'written', 'written'], trips: 1 })
      assert.deepEqual((await ledger.check()).violations, [])
    })
  }
})
