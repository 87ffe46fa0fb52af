import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('responses')
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('line', text, (column) => column.notNull())
    .addColumn('model', text, (column) => column.notNull())
    .addColumn('tokens', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('responses_key', ['id', 'account'])
    .execute()
  await db.schema.createIndex('responses_by_age').on('responses').columns(['created_at']).execute()
}
