import { type Kysely, PostgresAdapter } from 'kysely'

/** Whether a database is Postgres, for the few statements that differ. */
export function isPostgres<T>(db: Kysely<T>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}
