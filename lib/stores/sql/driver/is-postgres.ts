import { type Kysely, PostgresAdapter } from 'kysely'

/** Whether a database is a Postgres, for the little in which the two have to be asked differently. */
export function isPostgres<T>(db: Kysely<T>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}
