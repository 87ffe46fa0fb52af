import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'
import { isPostgres } from '../is-postgres.ts'

/** What calls are searched by, beside the columns of `calls`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  const table = db.schema
    .createTable('call_labels')
    .addColumn('label', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('call_labels_id', ['label', 'id'])
  await (isPostgres(db) ? table : table.modifyEnd(sql`without rowid`)).execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('call_labels').execute()
}
