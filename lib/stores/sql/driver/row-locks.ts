import type { SelectQueryBuilder } from 'kysely'
import { isPostgres } from './database.ts'
import { RowStatement, type RowWrite } from './row-statement.ts'
import type { Database } from './tables.ts'

/*
 * Locks of Postgres, until the end of the transaction. SQLite has one writer, and needs none.
 */

/** Returns a query that locks its rows. It waits for rows that another transaction has locked. */
export function lockRows<DB, TB extends keyof DB, O>(
  db: Database,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return isPostgres(db) ? query.forUpdate() : query
}

/**
 * Returns a query that locks its rows, without those that another transaction has locked: processes that run it at the same time each
 * get others. It belongs in a `with`, which Postgres runs once. A subquery it may run for each row of a table that it takes for
 * small, and each run finds rows beyond the limit.
 */
export function lockFreeRows<DB, TB extends keyof DB, O>(
  db: Database,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return isPostgres(db) ? query.forUpdate().skipLocked() : query
}

const LOCK_NAMED_ROW = RowStatement.insert(
  'upkeep',
  { name: 'text' },
  'on conflict (name) do update set name = excluded.name',
)

/** Returns the write by which transactions that have it run one after the other: it locks the row of their name. */
export function lockNamedRow(name: string): RowWrite {
  return { statement: LOCK_NAMED_ROW, rows: [[`in turn: ${name}`]] }
}

/** Waits until no other transaction that takes turns under a name is running. */
export async function takeTurn(trx: Database, name: string): Promise<void> {
  const { statement, rows } = lockNamedRow(name)
  await statement.run(trx, rows)
}
