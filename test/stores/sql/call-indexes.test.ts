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
import { openDatabase, SqlCallStore } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { databaseUrl, open } from './temporary-database.ts'

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
  const CALL = /SEARCH calls USING INDEX \w+ \((?:account=\? AND )?id=\?\)/
  const lists: [string, Partial<CallQuery>, RegExp, RegExp?][] = [
    ['of an account', {}, /USING INDEX calls_by_account \(account=\?\)/],
    ['of a span of time', times, /USING INDEX calls_by_account \(account=\? AND id>\? AND id<\?\)/],
    ['of a model', { model: 'm' }, /USING INDEX calls_by_model \(account=\? AND model=\?\)/],
    [
      'of a model in a span of time',
      { model: 'm', ...times },
      /calls_by_model \(account=\? AND model=\? AND id<\?\)/,
    ],
    ['of a status', { status: 502 }, /USING INDEX calls_by_status \(account=\? AND status=\?\)/],
    [
      'of a status in a span of time',
      { status: 429, ...times },
      /USING INDEX calls_by_status \(account=\? AND status=\? AND id<\?\)/,
    ],
    ['of those that ended well', { status: 200 }, /USING INDEX calls_by_account \(account=\?\)/],
    [
      'of those that ended well in a span of time',
      { status: 200, ...times },
      /USING INDEX calls_by_account \(account=\? AND id>\? AND id<\?\)/,
    ],
    ['of a key', { account: undefined, key: 'k' }, /call_labels USING PRIMARY KEY \(label=\?\)/, CALL],
    [
      'of a user',
      { user: 'ann', ...times },
      /call_labels USING PRIMARY KEY \(label=\? AND id>\? AND id<\?\)/,
      CALL,
    ],
    ['of a caller’s id', { clientRequestId: 'c' }, /call_labels USING PRIMARY KEY \(label=\?\)/, CALL],
    ['of a line', { account: undefined, line: 'us' }, /call_labels USING PRIMARY KEY \(label=\?\)/, CALL],
    ['of a tag', { tags: { team: 'search' } }, /call_labels USING PRIMARY KEY \(label=\?\)/, CALL],
    [
      'that failed',
      { account: undefined, statusClass: 5 },
      /call_labels USING PRIMARY KEY \(label=\?\)/,
      CALL,
    ],
    ['that took long', { minDurationMs: 30_000 }, /call_labels USING PRIMARY KEY \(label=\?\)/, CALL],
    ['of a code', { code: 'rate_limited' }, /USING INDEX calls_by_error \(account=\? AND error_code=\?\)/],
  ]
  for (const [what, filters, index, next] of lists) {
    it(`${what} are read from an index, newest first, and sorted by none`, async (t) => {
      const url = await databaseUrl(t)
      await open(t, url)
      const asked: CompiledQuery[] = []
      const db = await overheard(t, url, asked)
      await new SqlCallStore(db).list({ account: 'acme', limit: 20, ...filters })
      const [query] = asked
      assert.ok(query)
      const explain = CompiledQuery.raw(`explain query plan ${query.sql}`, [...query.parameters])
      const { rows } = await db.executeQuery<{ detail: string }>(explain)
      const [step, ...more] = rows.map(({ detail }) => detail)
      assert.match(step ?? '', index)
      if (next) assert.match(more.shift() ?? '', next)
      assert.deepEqual(more, [])
    })
  }

  for (const [what, filters, index] of [
    ['a model', { model: 'm' }, 'calls_by_model (account=? AND model=?)'],
    ['a status', { status: 503 }, 'calls_by_status (account=? AND status=?)'],
    ['a code', { code: 'no_candidate' }, 'calls_by_error (account=? AND error_code=?)'],
  ] as const)
    it(`of ${what} through all accounts walk through none of their calls`, async (t) => {
      const url = await databaseUrl(t)
      await open(t, url)
      const asked: CompiledQuery[] = []
      const db = await overheard(t, url, asked)
      await new SqlCallStore(db).list({ limit: 20, ...filters })
      const explain = CompiledQuery.raw(`explain query plan ${asked[0]?.sql}`, [
        ...(asked[0]?.parameters ?? []),
      ])
      const { rows } = await db.executeQuery<{ detail: string }>(explain)
      const steps = rows.map(({ detail }) => detail)
      assert.ok(steps.filter((step) => step.includes(index)).length === 2, steps.join('\n'))
      assert.ok(!steps.some((step) => /SCAN (calls|found)/.test(step)), steps.join('\n'))
    })

  it('find by every status what was written before the index of those that ended well was given up', async (t) => {
    const url = await databaseUrl(t)
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
      const found = await store.list({ account: 'acme', status, limit: 10 })
      assert.deepEqual(found, entries.filter((entry) => entry.status === status).reverse())
    }
    assert.deepEqual((await sql`pragma integrity_check`.execute(older)).rows, [{ integrity_check: 'ok' }])
  })

  it('are narrower than before in a database that is opened', async (t) => {
    const db = await openDatabase(await databaseUrl(t))
    t.after(() => db.destroy())
    const { rows } = await sql<{ sql: string }>`
      select sql from sqlite_master where name = 'calls_by_status'`.execute(db)
    assert.match(rows[0]?.sql ?? '', /where status <> 200$/)
  })
})
