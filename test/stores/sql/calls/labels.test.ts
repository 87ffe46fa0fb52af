import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../../lib/middleware/call-log/index.ts'
import { type Database, SqlCallStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, prepaid } from '../../../contracts/ledger-money.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

async function labels(db: Database): Promise<string[]> {
  const rows = await db.selectFrom('call_labels').select(['label', 'id']).execute()
  return rows.map(({ label, id }) => `${label.replaceAll('\n', ' ')} | ${id}`).sort()
}

/** The entries and labels that several versions of the gateway write and read. */
const LABELS: readonly (readonly [Partial<CallLogEntry>, readonly string[]])[] = [
  [{ duration_ms: 0 }, ['key key_acme', 'model chat-small']],
  [{ duration_ms: 3, key: null, model: null }, ['took 2']],
  [{ duration_ms: 9999, key: null, model: null }, ['took 5000']],
  [{ duration_ms: 10_000, key: null, model: null }, ['took 10000', 'took 10000 acme']],
  [{ duration_ms: 10_000, key: null, model: null, account: null }, ['took 10000']],
  [{ duration_ms: 9_000_000, key: null, model: null }, ['took 3600000', 'took 3600000 acme']],
  [
    { duration_ms: 0, key: null, model: null, status: 429, error_code: 'rate_limited' },
    ['code rate_limited', 'status 4', 'status 4 acme', 'status 429'],
  ],
  [{ duration_ms: 0, key: null, model: null, status: 201 }, ['status 201']],
  [
    { duration_ms: 0, key: null, model: null, client_request_id: 'c', user: 'ann', tags: { a: 'b' } },
    ['client c', 'client c acme', 'tag a=b', 'tag a=b acme', 'user ann', 'user ann acme'],
  ],
]

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`the labels by which calls are found: ${name}`, { skip }, () => {
    it('are the same of appended calls and of settled ones', async () => {
      const { db } = await emptied()
      const [store, ledger] = [new SqlCallStore(db), new SqlLedger(db)]
      const account = await prepaid(ledger, 1n)
      const expected: string[] = []
      for (const [i, [members, own]] of LABELS.entries()) {
        const [appended, settled] = [entryAt(NOW + 2 * i, members), entryAt(NOW + 2 * i + 1, members)]
        await store.append([appended])
        await ledger.settle([charge(account, 0n, { requestId: settled.id, entry: settled })])
        for (const { id } of [appended, settled]) expected.push(...own.map((label) => `${label} | ${id}`))
      }
      assert.deepEqual(await labels(db), expected.sort())
    })

    it('go with their calls, and those of others stay', async () => {
      const { db } = await emptied()
      const store = new SqlCallStore(db)
      const members = { key: null, model: null, duration_ms: 70_000 }
      const [old, kept] = [entryAt(NOW, members), entryAt(NOW + 1000, members)]
      const nobody = entryAt(NOW + 1, { ...members, account: null, duration_ms: 10_000 })
      await store.append([old, kept, nobody])
      assert.equal(await store.prune(NOW + 500, 10), 2)
      assert.deepEqual(
        await labels(db),
        ['took 60000 acme', 'took 60000'].map((label) => `${label} | ${kept.id}`),
      )
    })
  })
}
