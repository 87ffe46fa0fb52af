import { type SelectQueryBuilder, sql } from 'kysely'
import { isPostgres } from './is-postgres.ts'
import type { Database, Tables } from './tables.ts'

/*
 * Locks of Postgres, until the end of the transaction. SQLite has one writer, and needs none.
 */

/** Returns a query that locks its rows. It waits for rows that somebody else has locked. */
export function lockRows<DB, TB extends keyof DB, O>(
  db: Database,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return isPostgres(db) ? query.forUpdate() : query
}

/** Returns a query that locks its rows, without those that somebody else has locked: processes that run it at the same time each get others. */
export function lockFreeRows<DB, TB extends keyof DB, O>(
  db: Database,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return isPostgres(db) ? query.forUpdate().skipLocked() : query
}

/** Locks a table against changes by others. */
export async function lockTable(trx: Database, table: keyof Tables): Promise<void> {
  if (isPostgres(trx)) await sql`lock table ${sql.table(table)} in share row exclusive mode`.execute(trx)
}
