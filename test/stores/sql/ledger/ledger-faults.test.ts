import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { SqliteError } from '../../../../lib/stores/sql/driver/sqlite/sqlite-client.ts'
import { openDatabase, SqlIdempotencyStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, draw, figures, give, leaseOf, take } from '../../../contracts/ledger-money.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { databaseUrl, open } from '../support/temporary-database.ts'

const NOW = Date.now()

for (const { name, url, skip } of BACKENDS) {
  describe(`a ledger in ${name} that cannot write`, { skip }, () => {
    it('a settlement that fails at its last statement leaves nothing behind, and can be tried again', async (t) => {
      const db = await open(t, await url(t))
      const ledger = new SqlLedger(db)
      const claims = new SqlIdempotencyStore(db)
      await ledger.deposit('acme', 1000n, 'first', 1)
      const lease = await leaseOf(ledger, 'account:acme', 100n)
      const requestId = newRequestId(NOW)
      const claim = { id: 'record', owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + 60_000 }
      await claims.claim(claim)
      const once = charge('acme', 30n, {
        requestId,
        draws: [draw(lease, 'account:acme', 30n)],
        claim: { id: 'record', owner: requestId, keepUntil: NOW + 86_400_000 },
        entry: entryAt(NOW, { id: requestId }),
      })
      await sql`alter table calls rename to gone`.execute(db)
      await assert.rejects(async () => ledger.settle([once]), /calls/)
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 100n, 0n])
      assert.equal((await claims.claim({ ...claim, owner: 'x' }))?.state, 'running')
      await sql`alter table gone rename to calls`.execute(db)
      assert.deepEqual(await ledger.settle([once]), ['written'])
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 30n, 70n, 0n])
      assert.equal((await claims.claim({ ...claim, owner: 'x' }))?.state, 'completed')
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('a figure that would grow beyond 64 bits fails its batch, and the rows stay as they are', async (t) => {
      const ledger = new SqlLedger(await open(t, await url(t)))
      await ledger.settle([charge('acme', 2n ** 63n - 1n)])
      await assert.rejects(async () => ledger.settle([charge('globex', 1n), charge('acme', 1n)]), RangeError)
      assert.deepEqual(await figures(ledger, 'acme'), [0n, 2n ** 63n - 1n, 0n, 0n])
      assert.deepEqual(await ledger.wallets(['account:globex']), [])
    })

    it('each operation says clearly that the database is for reading only', async (t) => {
      const database = await url(t)
      const writer = new SqlLedger(await open(t, database))
      await writer.deposit('acme', 1000n, 'first', 1)
      const lease = await leaseOf(writer, 'account:acme', 100n)
      const db = await openDatabase(database, { readOnly: true })
      t.after(() => db.destroy())
      const ledger = new SqlLedger(db)
      const readOnly = /read-?only/
      await assert.rejects(async () => ledger.settle([charge('acme', 1n)]), readOnly)
      await assert.rejects(ledger.change('p', [take('other', 'account:acme', 1n)]), readOnly)
      await assert.rejects(ledger.change('p', [give(lease, 'account:acme', 1n)]), readOnly)
      await assert.rejects(ledger.renew([lease], 1), readOnly)
      await assert.rejects(ledger.sweep(lease, 1), readOnly)
      await assert.rejects(ledger.deposit('acme', 1n, 'more', 1), readOnly)
      await assert.rejects(ledger.setLimit('key:k', { limited: false }), readOnly)
      assert.equal((await ledger.leases()).length, 1)
      assert.deepEqual((await ledger.check()).violations, [])
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 100n, 0n])
    })

    it('ended leases are forgotten after ten minutes', async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: NOW })
      let passed = 0
      t.mock.method(performance, 'now', () => passed)
      const pass = (ms: number): void => {
        passed += ms
        t.mock.timers.tick(ms)
      }
      const ledger = new SqlLedger(await open(t, await url(t)))
      await ledger.deposit('acme', 1000n, 'first', 1)
      const lease = await leaseOf(ledger, 'account:acme', 5n)
      await ledger.sweep(lease, 1)
      const kept = await leaseOf(ledger, 'account:acme', 5n)
      const again = [take(lease, 'account:acme', 5n)]
      pass(600_000)
      await ledger.renew([kept], Date.now())
      assert.equal((await ledger.change('p', again))[0]?.lost, true)
      pass(60_000)
      assert.deepEqual([...(await ledger.renew([kept], Date.now()))], [kept])
      assert.equal((await ledger.change('p', again))[0]?.moved, 5n)
    })
  })
}

describe('a ledger in SQLite on a full disk', () => {
  it('rejects with what SQLite says, writes nothing by halves, and goes on when there is room', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const ledger = new SqlLedger(db)
    await ledger.deposit('acme', 1000n, 'first', 1)
    const { rows } = await sql<{ page_count: bigint }>`pragma page_count`.execute(db)
    await sql.raw(`pragma max_page_count = ${Number(rows[0]?.page_count) + 20}`).execute(db)
    const batches = Array.from({ length: 100 }, (_, i) =>
      Array.from({ length: 20 }, (_, n) =>
        charge('acme', 1n, { requestId: `req_${i}_${n}`, basis: 'x'.repeat(200) }),
      ),
    )
    let written = 0
    await assert.rejects(
      async () => {
        for (const batch of batches) {
          await ledger.settle(batch)
          written += batch.length
        }
      },
      (error) => error instanceof SqliteError && error.errcode === 13,
    )
    assert.ok(written > 0 && written < 2000)
    assert.deepEqual(await figures(ledger, 'acme'), [1000n, BigInt(written), 0n, 0n])
    await sql`pragma max_page_count = 1000000`.execute(db)
    for (const batch of batches) await ledger.settle(batch)
    const { violations, charges } = await ledger.check()
    assert.deepEqual([violations, charges], [[], 2000])
  })
})
