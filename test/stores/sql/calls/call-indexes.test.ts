import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CompiledQuery, Kysely } from 'kysely'
import type { CallQuery } from '../../../../lib/middleware/call-log/index.ts'
import { SqliteClient } from '../../../../lib/stores/sql/driver/sqlite/sqlite-client.ts'
import { NodeSqliteDialect } from '../../../../lib/stores/sql/driver/sqlite/sqlite-dialect.ts'
import type { Tables } from '../../../../lib/stores/sql/driver/tables.ts'
import { SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { databaseUrl, open } from '../support/temporary-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

/** A handle that records its queries. */
async function overheard(t: TestContext, url: string, asked: CompiledQuery[]): Promise<Kysely<Tables>> {
  const file = url.slice('sqlite:'.length)
  await mkdir(dirname(file), { recursive: true })
  const client = await SqliteClient.open({ file, readOnly: false, busyTimeoutMs: 1000, maxStatements: 10 })
  const log = ({ query }: { query: CompiledQuery }) => void asked.push(query)
  const db = new Kysely<Tables>({ dialect: new NodeSqliteDialect(client), log })
  t.after(() => db.destroy())
  return db
}

describe('lists of calls in SQLite', () => {
  const times = { from: NOW - 86_400_000, to: NOW }
  const LISTED = /SEARCH (calls|call_labels) USING (COVERING INDEX \w+|PRIMARY KEY) \(/
  const lists: [string, Partial<CallQuery>, string][] = [
    ['of an account', { account: 'acme' }, 'calls_by_account (account=?)'],
    ['of a span of time', { account: 'acme', ...times }, 'calls_by_account (account=? AND id>? AND id<?)'],
    ['of an account’s model', { account: 'acme', model: 'm' }, 'calls_by_model (account=? AND model=?)'],
    [
      'of a model in a span of time',
      { account: 'acme', model: 'm', ...times },
      'calls_by_model (account=? AND model=? AND id>? AND id<?)',
    ],
    ['of an account’s status', { account: 'acme', status: 502 }, 'calls_by_status (account=? AND status=?)'],
    [
      'of a status in a span of time',
      { account: 'acme', status: 429, ...times },
      'calls_by_status (account=? AND status=? AND id>? AND id<?)',
    ],
    [
      'of an account’s code',
      { account: 'acme', code: 'rate_limited' },
      'calls_by_error (account=? AND error_code=?)',
    ],
    [
      'of a user in a span of time',
      { account: 'acme', user: 'ann', ...times },
      'PRIMARY KEY (label=? AND id>? AND id<?)',
    ],
    ['of a caller’s id', { account: 'acme', clientRequestId: 'c' }, 'PRIMARY KEY (label=?)'],
    ['of a tag', { account: 'acme', tags: { team: 'search' } }, 'PRIMARY KEY (label=?)'],
    ['of a key', { key: 'k' }, 'PRIMARY KEY (label=?)'],
    ['of a line', { line: 'us' }, 'PRIMARY KEY (label=?)'],
    ['of a model', { model: 'm' }, 'PRIMARY KEY (label=?)'],
    ['of a status', { status: 503 }, 'PRIMARY KEY (label=?)'],
    ['of a code', { code: 'no_candidate' }, 'PRIMARY KEY (label=?)'],
    ['that failed', { statusClass: 5 }, 'PRIMARY KEY (label=?)'],
  ]
  for (const [what, filters, index] of lists) {
    it(`${what} are read from an index, newest first, and sorted by none`, async (t) => {
      const url = await databaseUrl(t)
      await open(t, url)
      const asked: CompiledQuery[] = []
      const db = await overheard(t, url, asked)
      await new SqlCallStore(db).list({ limit: 20, ...filters })
      assert.equal(asked.length, 1)
      const explain = CompiledQuery.raw(`explain query plan ${asked[0]?.sql}`, [
        ...(asked[0]?.parameters ?? []),
      ])
      const { rows } = await db.executeQuery<{ detail: string }>(explain)
      const [start, listed, ...rest] = rows.map(({ detail }) => detail)
      assert.equal(start, 'CO-ROUTINE listed')
      assert.match(listed ?? '', LISTED)
      assert.ok(listed?.endsWith(index), listed)
      assert.deepEqual(rest, ['SCAN listed', 'SEARCH calls USING INDEX sqlite_autoindex_calls_1 (id=?)'])
    })
  }

  it('find by every status what was written, whether an index has it or not', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const statuses = [200, 502, 200, 429, 499]
    const entries = statuses.map((status, i) => entryAt(NOW + i, { account: 'acme', status }))
    const store = new SqlCallStore(db)
    await store.append(entries)
    for (const status of [200, 502, 429, 499, 201]) {
      const found = (await store.list({ account: 'acme', status, limit: 10 })).entries
      assert.deepEqual(found, entries.filter((entry) => entry.status === status).reverse())
    }
  })
})
