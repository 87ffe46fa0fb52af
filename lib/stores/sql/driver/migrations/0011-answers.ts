import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'
import { isPostgres } from '../is-postgres.ts'

/** Answers of calls with an Idempotency-Key, in parts. Earlier ones stay where they are, in `calls.response_body`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('answers')
    .addColumn('id', byteText(db), (column) => column.notNull())
    .addColumn('part', 'integer', (column) => column.notNull())
    .addColumn('bytes', isPostgres(db) ? 'bytea' : 'blob', (column) => column.notNull())
    .addPrimaryKeyConstraint('answers_id', ['id', 'part'])
    .execute()
  // Compressing megabytes would take longer than writing them.
  if (isPostgres(db)) await sql`alter table answers alter column bytes set storage external`.execute(db)
}
