import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('rest_lifts')
    .addColumn('line', byteText(db), (column) => column.primaryKey())
    .addColumn('lifts', 'integer', (column) => column.notNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('rest_lifts').execute()
}
