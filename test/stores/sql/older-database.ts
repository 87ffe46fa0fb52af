import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Dialect, Kysely, PostgresDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { Pool } from 'pg'
import { MIGRATIONS } from '../../../lib/stores/sql/driver/migrate.ts'
import { SqliteClient } from '../../../lib/stores/sql/driver/sqlite/sqlite-client.ts'
import { NodeSqliteDialect } from '../../../lib/stores/sql/driver/sqlite/sqlite-dialect.ts'

/**
 * Makes a database with the first migrations only, as an older version made it, or brings one so far. Destroy it before it
 * is opened as one of today.
 *
 * @param last the name of the last migration of that version.
 */
export async function olderDatabase(url: string, last: string): Promise<Kysely<unknown>> {
  assert.ok(last in MIGRATIONS, last)
  const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name <= last))
  const db = new Kysely<unknown>({ dialect: await dialectOf(url) })
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  assert.equal((await migrator.migrateToLatest()).error, undefined)
  return db
}

async function dialectOf(url: string): Promise<Dialect> {
  if (!url.startsWith('sqlite:')) return new PostgresDialect({ pool: new Pool({ connectionString: url }) })
  const file = url.slice('sqlite:'.length)
  await mkdir(dirname(file), { recursive: true })
  const options = { file, readOnly: false, busyTimeoutMs: 1000, maxStatements: 10 }
  return new NodeSqliteDialect(await SqliteClient.open(options))
}
