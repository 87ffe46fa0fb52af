import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('webhooks')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('url', text, (column) => column.notNull())
    .addColumn('events', text)
    .addColumn('description', text)
    .addColumn('secret', text, (column) => column.notNull())
    .addColumn('old_secret', text)
    .addColumn('old_secret_until', 'bigint')
    .addColumn('disabled_at', 'bigint')
    .addColumn('dropped', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('webhook_events')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('type', text, (column) => column.notNull())
    .addColumn('subject', text, (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('data', text, (column) => column.notNull())
    .addColumn('addressed', 'integer', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('webhook_events_by_time').on('webhook_events').columns(['at', 'id']).execute()
  await sql`create index webhook_events_new on webhook_events (at, id) where addressed = 0`.execute(db)

  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('position', 'bigint', (column) => column.primaryKey())
    .addColumn('webhook', text, (column) => column.notNull())
    .addColumn('event', text, (column) => column.notNull())
    .addColumn('subject', text, (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('owner', text)
    .addColumn('next_at', 'bigint')
    .addColumn('status', 'integer')
    .addColumn('error', text)
    .addColumn('delivered_at', 'bigint')
    .execute()
  // Ended deliveries, which are almost all of them, are in none of the first two indexes.
  await sql`create index webhook_deliveries_due on webhook_deliveries (webhook, next_at) where next_at is not null`.execute(
    db,
  )
  await sql`create index webhook_deliveries_queued on webhook_deliveries (webhook, subject, position) where next_at is not null`.execute(
    db,
  )
  await sql`create index webhook_deliveries_listed on webhook_deliveries (webhook, position)`.execute(db)
  await sql`create index webhook_deliveries_by_time on webhook_deliveries (created_at)`.execute(db)

  await db.schema
    .createTable('webhook_states')
    .addColumn('subject', text, (column) => column.primaryKey())
    .addColumn('state', text, (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute()
  await sql`create index keys_by_expiry on keys (expires_at) where expires_at is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index keys_by_expiry`.execute(db)
  for (const table of ['webhook_states', 'webhook_deliveries', 'webhook_events', 'webhooks'])
    await db.schema.dropTable(table).execute()
}
