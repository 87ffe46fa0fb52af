import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { assertSound, charge, figures, leaseOf, prepaid } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

async function world(t: TestContext) {
  const db = await open(t, await postgresUrl())
  const ledger = new SqlLedger(db)
  const [busy, other] = [await prepaid(ledger, 1000n), await prepaid(ledger, 1000n)]
  return { db, ledger, busy, other }
}

describe('a lease that is swept', { skip: WITHOUT_POSTGRES }, () => {
  it('is returned although the charges of its account never leave its rows alone', async (t) => {
    const { ledger, busy } = await world(t)
    const leases = await Promise.all(Array.from({ length: 20 }, () => leaseOf(ledger, `account:${busy}`, 5n)))
    let goesOn = true
    const charges = [1, 2, 3].map(async () => {
      let settled = 0
      for (; goesOn; settled += 1) await ledger.settle([charge(busy, 1n)])
      return settled
    })
    try {
      for (const lease of leases) assert.equal(await ledger.sweep(lease, 1), true)
    } finally {
      goesOn = false
    }
    const settled = BigInt((await Promise.all(charges)).reduce((sum, count) => sum + count, 0))
    assert.deepEqual(await figures(ledger, busy), [1000n, settled, 0n, 0n])
    await assertSound(ledger)
  })

  for (const table of ['wallets', 'leases'] as const) {
    it(`is left out while its row of ${table} is locked, and the others with it are returned soon`, async (t) => {
      const { db, ledger, busy, other } = await world(t)
      const locked = await Promise.all([1, 2].map(() => leaseOf(ledger, `account:${busy}`, 5n)))
      const free = await Promise.all([1, 2].map(() => leaseOf(ledger, `account:${other}`, 5n)))
      const all = [locked[0], free[0], locked[1], free[1]] as string[]
      await db.transaction().execute(async (trx) => {
        const ids = table === 'wallets' ? [`account:${busy}`] : locked
        await sql`select 1 from ${sql.table(table)} where id = any(${ids}::text[]) for update`.execute(trx)
        const since = performance.now()
        const sweeping = Promise.all(all.map((lease) => ledger.sweep(lease, 1)))
        // The work for an account whose rows are locked does not delay the charges of others.
        await ledger.settle([charge(other, 1n)])
        assert.deepEqual(await sweeping, [false, true, false, true])
        assert.ok(performance.now() - since < 900)
      })
      assert.deepEqual(await figures(ledger, busy), [1000n, 0n, 10n, 0n])
      assert.deepEqual(await figures(ledger, other), [1000n, 1n, 0n, 0n])
      assert.deepEqual(await Promise.all(locked.map((lease) => ledger.sweep(lease, 1))), [true, true])
      await assertSound(ledger)
    })
  }

  it('is none where it was renewed while the sweep waited for its rows', async (t) => {
    const { db, ledger, busy } = await world(t)
    const lease = await leaseOf(ledger, `account:${busy}`, 5n)
    const sweeping = await db.transaction().execute(async (trx) => {
      await sql`update leases set beats = beats + 1 where id = ${lease}`.execute(trx)
      const swept = ledger.sweep(lease, 1)
      for (let waits = 0; waits === 0; ) {
        const { rows } = await sql<{ waits: number }>`select count(*)::integer as waits from pg_locks
          where not granted`.execute(trx)
        waits = rows[0]?.waits ?? 0
      }
      return { swept }
    })
    assert.equal(await sweeping.swept, false)
    assert.deepEqual(await figures(ledger, busy), [1000n, 0n, 5n, 0n])
  })
})
