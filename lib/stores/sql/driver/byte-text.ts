import { type Kysely, sql } from 'kysely'
import { isPostgres } from './is-postgres.ts'

/**
 * The type of every text column: text that compares and sorts by its bytes. SQLite does so by itself; a Postgres would
 * otherwise go by the language it was set up for, in which ids do not sort by their time.
 *
 * @example
 * db.schema.createTable('calls').addColumn('id', byteText(db), (column) => column.primaryKey())
 */
export function byteText<T>(db: Kysely<T>) {
  return isPostgres(db) ? sql`text collate "C"` : 'text'
}
