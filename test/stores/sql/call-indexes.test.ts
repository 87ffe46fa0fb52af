import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CompiledQuery, Kysely, sql } from 'kysely'
import type { CallQuery } from '../../../lib/middleware/call-log/index.ts'
import { up as accountsKeysCalls } from '../../../lib/stores/sql/driver/migrations/0001-accounts-keys-calls.ts'
import { up as failedCalls } from '../../../lib/stores/sql/driver/migrations/0009-failed-calls.ts'
import { up as attribution } from '../../../lib/stores/sql/driver/migrations/0018-attribution.ts'
import { up as usage } from '../../../lib/stores/sql/driver/migrations/0024-usage.ts'
import { SqliteClient } from '../../../lib/stores/sql/driver/sqlite/sqlite-client.ts'
import { NodeSqliteDialect } from '../../../lib/stores/sql/driver/sqlite/sqlite-dialect.ts'
import type { Tables } from '../../../lib/stores/sql/driver/tables.ts'
import { openDatabase, SqlCallStore, SqlUsageCounter } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { databaseUrl, emptyDatabaseUrl, open } from './temporary-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

/** A handle that tells what it was asked. */
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

  it('find by every status what was written before the index of those that ended well was given up', async (t) => {
    const url = await emptyDatabaseUrl(t)
    const older = await overheard(t, url, [])
    await accountsKeysCalls(older as unknown as Kysely<unknown>)
    await attribution(older as unknown as Kysely<unknown>)
    await sql`create table charges (id text)`.execute(older)
    await sql`create table voids (id text)`.execute(older)
    await usage(older as unknown as Kysely<unknown>)
    const statuses = [200, 502, 200, 429, 499]
    const entries = statuses.map((status, i) => entryAt(NOW + i, { account: 'acme', status }))
    const store = new SqlCallStore(older)
    await store.append(entries)
    await failedCalls(older as unknown as Kysely<unknown>)
    for (const status of [200, 502, 429, 499, 201]) {
      const found = (await store.list({ account: 'acme', status, limit: 10 })).entries
      assert.deepEqual(found, entries.filter((entry) => entry.status === status).reverse())
    }
    assert.deepEqual((await sql`pragma integrity_check`.execute(older)).rows, [{ integrity_check: 'ok' }])
  })

  it('find by every filter what an older version has written, once that has its labels', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const store = new SqlCallStore(db)
    const entries = [12, 2500, 70_000].map((duration_ms, i) => entryAt(NOW + i, { duration_ms, status: 503 }))
    const found = async (query: Partial<CallQuery>) =>
      (await store.list({ limit: 10, ...query })).entries.length
    const label = async () => {
      const counter = new SqlUsageCounter(db)
      await counter.counted()
      await counter.close()
    }
    const withoutLabels = () => sql`delete from call_labels`.execute(db)
    await store.append(entries)
    await withoutLabels()
    assert.equal(await found({ minDurationMs: 2000 }), 0)
    await label()
    assert.deepEqual(
      [
        await found({ minDurationMs: 2000 }),
        await found({ model: 'chat-small' }),
        await found({ status: 503 }),
      ],
      [2, 3, 3],
    )
    // What an older version writes meanwhile gets its labels too, and then no more is looked at.
    await store.append([entryAt(NOW + 9, { duration_ms: 5000 })])
    await withoutLabels()
    await label()
    assert.equal(await found({ minDurationMs: 2000 }), 1)
    await withoutLabels()
    await label()
    assert.equal(await found({ minDurationMs: 2000 }), 0)
  })

  it('are narrower than before in a database that is opened', async (t) => {
    const db = await openDatabase(await databaseUrl(t))
    t.after(() => db.destroy())
    const { rows } = await sql<{ sql: string }>`
      select sql from sqlite_master where name = 'calls_by_status'`.execute(db)
    assert.match(rows[0]?.sql ?? '', /where status <> 200$/)
  })
})
