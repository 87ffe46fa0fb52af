import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

/** What deleted charges came to, and what deletes old rows: who, how far it has come, and when it was done last. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('carried_spending')
    .addColumn('wallet', text, (column) => column.primaryKey())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('charges', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('upkeep')
    .addColumn('name', text, (column) => column.primaryKey())
    .addColumn('owner', text)
    .addColumn('until', 'bigint')
    .addColumn('mark', text)
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql`select 1 from carried_spending limit 1`.execute(db)
  if (rows.length > 0)
    throw new Error('charges were deleted that the version before cannot do without: restore a backup')
  await db.schema.dropTable('upkeep').execute()
  await db.schema.dropTable('carried_spending').execute()
}
