import { type Kysely, sql } from 'kysely'
import { isPostgres } from './is-postgres.ts'

/**
 * Returns the type of all text columns: text that is compared and sorted by its bytes. SQLite does so by itself.
 * Postgres would otherwise use the language of its setup, in which ids do not sort by time.
 *
 * @example
 * db.schema.createTable('calls').addColumn('id', byteText(db), (column) => column.primaryKey())
 */
export function byteText<T>(db: Kysely<T>) {
  return isPostgres(db) ? sql`text collate "C"` : 'text'
}
