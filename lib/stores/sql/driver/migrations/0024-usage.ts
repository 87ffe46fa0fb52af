import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'
import { isPostgres } from '../is-postgres.ts'

const FIGURES = [
  'requests',
  'refused',
  'failed',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'milliseconds',
  'charged',
  'cost',
  ...Array.from({ length: 12 }, (_, i) => `d${i}`),
]

/** The usage of calls by hours. What was charged and logged before is counted later, a few rows at a time. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  let table = db.schema
    .createTable('usage')
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('grain', 'integer', (column) => column.notNull())
    .addColumn('hour', 'bigint', (column) => column.notNull())
    .addColumn('digest', text, (column) => column.notNull())
  for (const name of ['key', 'model', 'line', 'user_id', 'tags'])
    table = table.addColumn(name, text, (column) => column.notNull())
  for (const name of FIGURES) table = table.addColumn(name, 'bigint', (column) => column.notNull())
  table = table.addPrimaryKeyConstraint('usage_id', ['account', 'grain', 'hour', 'digest'])
  await (isPostgres(db) ? table : table.modifyEnd(sql`without rowid`)).execute()
  await db.schema.createIndex('usage_by_hour').on('usage').columns(['grain', 'hour']).execute()
  await db.schema
    .createTable('usage_marks')
    .addColumn('name', text, (column) => column.primaryKey())
    .addColumn('mark', text, (column) => column.notNull())
    .execute()
  // Null: not counted yet.
  await db.schema.alterTable('charges').addColumn('usage', text).execute()
  await db.schema.alterTable('voids').addColumn('counted', 'integer').execute()
  await db.schema.alterTable('calls').addColumn('counted', 'integer').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('calls').dropColumn('counted').execute()
  await db.schema.alterTable('voids').dropColumn('counted').execute()
  await db.schema.alterTable('charges').dropColumn('usage').execute()
  await db.schema.dropTable('usage_marks').execute()
  await db.schema.dropTable('usage').execute()
}
