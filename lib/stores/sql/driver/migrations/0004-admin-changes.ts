import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('admin_changes')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('actor', text, (column) => column.notNull())
    .addColumn('action', text, (column) => column.notNull())
    .addColumn('subject', text, (column) => column.notNull())
    .addColumn('before', text)
    .addColumn('after', text, (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('admin_changes_by_subject')
    .on('admin_changes')
    .columns(['subject', 'id'])
    .execute()
}
