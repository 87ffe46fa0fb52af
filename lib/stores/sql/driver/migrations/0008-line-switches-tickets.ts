import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('line_switches')
    .addColumn('line', text, (column) => column.primaryKey())
    .addColumn('enabled', 'integer', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('tickets')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('request_id', text, (column) => column.notNull())
    .addColumn('message', text, (column) => column.notNull())
    .addColumn('status', text, (column) => column.notNull())
    .addColumn('reply', text)
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute()
  // Ids sort by time: each index returns its rows newest first.
  await db.schema.createIndex('tickets_by_status').on('tickets').columns(['status', 'id']).execute()
  await db.schema.createIndex('tickets_by_account').on('tickets').columns(['account', 'id']).execute()
}
