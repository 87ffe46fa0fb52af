import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

/** Accounts whose home is another region, and the money that regions have of each other's wallets. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('mirrors')
    .addColumn('account', text, (column) => column.primaryKey())
    .addColumn('home', text, (column) => column.notNull())
    .addColumn('mirrored_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('mirrors_by_time').on('mirrors').columns(['mirrored_at']).execute()
  let shares = db.schema
    .createTable('shares')
    .addColumn('wallet', text, (column) => column.primaryKey())
    .addColumn('home', text, (column) => column.notNull())
  for (const name of ['seq', 'received', 'returned', 'told_spent', 'told_returned', 'elsewhere', 'used_at'])
    shares = shares.addColumn(name, 'bigint', (column) => column.notNull())
  await shares.addColumn('in_use', 'integer', (column) => column.notNull()).execute()
  await sql`create index shares_in_use on shares (home) where in_use = 1`.execute(db)
  let lent = db.schema
    .createTable('lent_shares')
    .addColumn('wallet', text, (column) => column.notNull())
    .addColumn('region', text, (column) => column.notNull())
  for (const name of ['seq', 'granted', 'returned', 'spent', 'reported_at'])
    lent = lent.addColumn(name, 'bigint', (column) => column.notNull())
  await lent.addPrimaryKeyConstraint('lent_shares_id', ['wallet', 'region']).execute()
  await db.schema
    .createTable('homes')
    .addColumn('name', text, (column) => column.primaryKey())
    .addColumn('owner', text)
    .addColumn('owned_until', 'bigint', (column) => column.notNull())
    .addColumn('contact_at', 'bigint', (column) => column.notNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['homes', 'lent_shares', 'shares', 'mirrors'])
    await db.schema.dropTable(table).execute()
}
