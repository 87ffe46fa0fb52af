import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('accounts')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('name', text)
    .addColumn('balance', 'bigint')
    .addColumn('rpm', 'bigint')
    .addColumn('tpm', 'bigint')
    .addColumn('concurrency', 'bigint')
    .addColumn('regions', text)
    .addColumn('line_regions', text)
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('keys')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull().references('accounts.id'))
    .addColumn('secret_hash', text, (column) => column.notNull().unique())
    .addColumn('enabled', 'integer', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('quota', 'bigint')
    .addColumn('allow_ips', text)
    .addColumn('allow_models', text)
    .addColumn('rpm', 'bigint')
    .addColumn('tpm', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('keys_by_account').on('keys').columns(['account', 'id']).execute()

  await db.schema
    .createTable('seeds')
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('seeded_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('seeds_id', ['kind', 'id'])
    .execute()

  await db.schema
    .createTable('calls')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('account', text)
    .addColumn('key', text)
    .addColumn('model', text)
    .addColumn('status', 'integer', (column) => column.notNull())
    .addColumn('error_code', text)
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('entry', text, (column) => column.notNull())
    .addColumn('response_body', text)
    .execute()
  // Ids sort by time: each index returns its rows newest first, and a range of time is a range of ids.
  await db.schema.createIndex('calls_by_account').on('calls').columns(['account', 'id']).execute()
  await db.schema.createIndex('calls_by_model').on('calls').columns(['account', 'model', 'id']).execute()
  await db.schema.createIndex('calls_by_status').on('calls').columns(['account', 'status', 'id']).execute()
  await db.schema
    .createIndex('calls_by_error')
    .on('calls')
    .columns(['account', 'error_code', 'id'])
    .where('error_code' as never, 'is not', null)
    .execute()
}
