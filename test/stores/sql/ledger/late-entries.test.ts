import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { usageOfEntry } from '../../../../lib/core/usage/index.ts'
import { LeasePool, type Settlement } from '../../../../lib/ledger/index.ts'
import type { CallLogEntry } from '../../../../lib/middleware/call-log/index.ts'
import type { Database } from '../../../../lib/stores/sql/driver/tables.ts'
import { openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, voidOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptyPostgresUrl, openPartitioned, postgresUrl } from '../support/postgres-database.ts'
import { open, PATIENT } from '../support/temporary-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

/** One settlement of one of the calls. */
const step = fc.record({
  call: fc.nat(3),
  what: fc.constantFrom('charge' as const, 'charge' as const, 'void' as const, 'revoked' as const),
})
const plan = fc.array(
  fc.record({
    locked: fc.constantFrom(null, null, 'calls', 'call_labels', 'calls, call_labels'),
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  }),
  { minLength: 2, maxLength: 5 },
)

/** Opens a database whose ledger does not wait for locks for long. */
async function opened(t: TestContext) {
  const url = await postgresUrl()
  const db = await openDatabase(url, { ...PATIENT, lockTimeoutMs: 50, logger: SILENT })
  t.after(() => db.destroy())
  return { db, other: await open(t, url), third: await open(t, url), ledger: new SqlLedger(db) }
}

/** Locks tables while something runs. */
async function whileLocked<T>(other: Database, tables: string | null, run: () => Promise<T>): Promise<T> {
  if (tables === null) return run()
  return other.transaction().execute(async (trx) => {
    await sql`lock table ${sql.raw(tables)} in access exclusive mode`.execute(trx)
    return run()
  })
}

async function rowsOf(db: Database): Promise<object> {
  const rows: Record<string, unknown> = {}
  for (const table of ['wallets', 'charges', 'voids', 'calls', 'usage'] as const)
    rows[table] = (await sql`select * from ${sql.table(table)} order by 1, 2, 3, 4`.execute(db)).rows
  return rows
}

/** A call as it was charged, or failed. */
function entryOf(id: string, isCharged: boolean): CallLogEntry {
  const billing = { reserved: '1', charged: isCharged ? '1' : null, cost: '0', items: [] }
  return entryAt(NOW, {
    id,
    account: 'acme',
    status: isCharged ? 200 : 503,
    outcome: isCharged ? 'completed' : 'failed',
    billing: billing as never,
  })
}

describe('log entries for which charges did not wait', { skip: WITHOUT_POSTGRES, timeout: 120_000 }, () => {
  let run = 0

  it('come to what they are where nothing was locked, and so does usage', async (t) => {
    const [locked, free] = [await opened(t), await opened(t)]
    await fc.assert(
      fc.asyncProperty(plan, async (batches) => {
        const ids = [0, 1, 2, 3].map((i) => newRequestId(NOW + run * 10 + i))
        run++
        for (const { locked: tables, steps } of batches) {
          const settlements = steps.map(({ call, what }): Settlement => {
            const requestId = ids[call] as string
            const entryOfCharge = entryOf(requestId, true)
            const usage = usageOfEntry(entryOfCharge)
            const charged = charge('acme', 7n, { requestId, at: NOW, usage, entry: entryOfCharge })
            if (what === 'charge') return charged
            const entry = entryOf(requestId, false)
            return what === 'void' ? voidOf(charged, { entry }) : { ...charged, kind: 'revoked', entry }
          })
          const results = await whileLocked(locked.other, tables, () => locked.ledger.settle(settlements))
          assert.deepEqual(results, await free.ledger.settle(settlements))
        }
        await locked.ledger.flush()
        assert.deepEqual(await rowsOf(locked.db), await rowsOf(free.db))
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })

  it('hold up no account but that of a row which is locked, too', async (t) => {
    const { other, third, ledger } = await opened(t)
    for (const account of ['busy', 'free']) await ledger.deposit(account, 1000n, 'opening', 1)
    await whileLocked(other, 'calls, call_labels', async () => {
      await third.transaction().execute(async (trx) => {
        await trx
          .selectFrom('wallets')
          .select('id')
          .where('id', '=', 'account:busy')
          .forUpdate()
          .executeTakeFirst()
        const [busy, free] = ['busy', 'free'].map((account) => charge(account, 1n)) as [
          Settlement,
          Settlement,
        ]
        await assert.rejects(ledger.settle([busy, free]), {
          name: 'WalletsLocked',
          wallets: new Set(['account:busy']),
        })
        assert.deepEqual(await ledger.settle([free]), ['written'])
      })
    })
  })

  it('do not wait where a part of a table is locked', async (t) => {
    const url = await emptyPostgresUrl()
    const db = await openPartitioned(t, url, { lockTimeoutMs: 50, logger: SILENT })
    const [other, ledger] = [await openPartitioned(t, url), new SqlLedger(db)]
    const entries = [0, 1].map((i) => entryOf(newRequestId(Date.now() + i), true))
    const [first, second] = entries.map((entry) => charge('acme', 1n, { requestId: entry.id, entry })) as [
      Settlement,
      Settlement,
    ]
    await ledger.settle([first])
    for (const table of ['calls', 'call_labels']) {
      const { rows } = await sql<{ part: string }>`select tableoid::regclass::text as part
        from ${sql.table(table)} limit 1`.execute(db)
      assert.notEqual(rows[0]?.part, table)
      const settled = await whileLocked(other, rows[0]?.part ?? '', () => ledger.settle([second]))
      assert.deepEqual(settled, [table === 'calls' ? 'written' : 'known'])
    }
  })

  it('are written when their pool closes', async (t) => {
    const { db, other, ledger } = await opened(t)
    const pool = new LeasePool({ ledger, logger: SILENT })
    const entry = entryOf(newRequestId(NOW), true)
    let closing: Promise<void> | undefined
    await whileLocked(other, 'call_labels', async () => {
      await ledger.settle([charge('acme', 1n, { requestId: entry.id, entry })])
      closing = pool.close()
      await sleep(100)
    })
    await closing
    const { rows } = await sql<{ id: string }>`select id from calls`.execute(db)
    assert.deepEqual(
      rows.map(({ id }) => id),
      [entry.id],
    )
  })
})

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
