import { type Kysely, sql } from 'kysely'
import { isPostgres } from '../is-postgres.ts'

/**
 * Almost all calls end with 200, and a list of those uses the index of accounts. An index of all other calls serves the
 * same lists and costs a successful call nothing. For SQLite only, where the old index was a quarter of what the
 * settlement of a call writes; Postgres would have to read a table of any size within `statementTimeoutMs` for it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  if (isPostgres(db)) return
  await db.schema.dropIndex('calls_by_status').execute()
  await sql`create index calls_by_status on calls (account, status, id) where status <> 200`.execute(db)
}
