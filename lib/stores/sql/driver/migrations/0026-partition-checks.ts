import { type Kysely, sql } from 'kysely'
import { isPostgres } from '../is-postgres.ts'

/** Compares all rows with the constraints of the step before. Others read and write meanwhile. */
export async function up(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  const { rows } = await sql<{ constraint: string; of: string }>`
    select conname as constraint, relname as of from pg_constraint join pg_class on pg_class.oid = conrelid
    where connamespace = current_schema()::regnamespace and not convalidated
      and conname in ('charges_until', 'calls_until', 'call_labels_until', 'answers_until')`.execute(db)
  for (const { constraint, of } of rows)
    await sql`alter table ${sql.table(of)} validate constraint ${sql.ref(constraint)}`.execute(db)
}

export async function down(): Promise<void> {}
