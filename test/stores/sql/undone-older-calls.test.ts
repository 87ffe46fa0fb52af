import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { usageOfEntry } from '../../../lib/core/usage/index.ts'
import { SqlCallStore, SqlLedger, SqlUsageCounter, SqlUsageStore } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { charge, voidOf } from '../../contracts/ledger-money.ts'
import { BACKENDS, type Backend } from './postgres-database.ts'
import { open } from './temporary-database.ts'

const AT = Date.now() - 60_000

async function world(t: TestContext, url: Backend['url']) {
  const db = await open(t, await url(t))
  const [ledger, calls] = [new SqlLedger(db), new SqlCallStore(db)]
  const billing = { charged: '0.00000003', reserved: '1' } as CallLogEntry['billing']
  const entry = entryAt(AT, { billing })
  const members = { requestId: entry.id, key: entry.key, at: AT, usage: usageOfEntry(entry), entry }
  const charged = charge('acme', 30n, members)
  const failed: CallLogEntry = { ...entry, status: 503, outcome: 'failed', billing: null }
  return {
    ...{ ledger, charged },
    undone: voidOf(charged, { entry: failed }),
    /** As a process has left it that did not count usage yet. */
    async asOlder() {
      for (const table of ['usage', 'usage_marks']) await sql`delete from ${sql.table(table)}`.execute(db)
      await sql`update charges set usage = null`.execute(db)
      for (const table of ['voids', 'calls'])
        await sql`update ${sql.table(table)} set counted = null`.execute(db)
    },
    /** What is counted in the end: requests, failed ones, and what was charged. */
    async counted() {
      const counter = new SqlUsageCounter(db)
      t.after(() => counter.close())
      await counter.counted()
      const span = { from: AT - 86_400_000, to: AT + 86_400_000, limit: 9 }
      const [row] = await new SqlUsageStore(db).read({ ...span, groupBy: [] })
      return [row?.sums.requests, row?.sums.failed, row?.sums.charged]
    },
    statusOf: async () => (await calls.find(entry.id))?.status,
  }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a call that an older version has charged and not counted: ${name}`, { skip }, () => {
    it('is counted once, as a failed one, where its charge is undone before it is counted', async (t) => {
      const { ledger, charged, undone, asOlder, counted, statusOf } = await world(t, url)
      assert.deepEqual(await ledger.settle([charged]), ['written'])
      await asOlder()
      assert.deepEqual(await ledger.settle([undone]), ['written'])
      assert.deepEqual(await counted(), [1, 1, 0n])
      assert.equal(await statusOf(), 503)
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('is counted once, as a failed one, where it is undone once more', async (t) => {
      const { ledger, charged, undone, asOlder, counted, statusOf } = await world(t, url)
      assert.deepEqual(await ledger.settle([charged]), ['written'])
      assert.deepEqual(await ledger.settle([undone]), ['written'])
      await asOlder()
      assert.deepEqual(await ledger.settle([undone]), ['known'])
      assert.deepEqual(await counted(), [1, 1, 0n])
      assert.equal(await statusOf(), 503)
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('is counted once where it is charged once more', async (t) => {
      const { ledger, charged, asOlder, counted } = await world(t, url)
      await ledger.settle([charged])
      await asOlder()
      assert.deepEqual(await ledger.settle([charged]), ['known'])
      assert.deepEqual(await counted(), [1, 0, 30n])
      assert.deepEqual((await ledger.check()).violations, [])
    })
  })
}
