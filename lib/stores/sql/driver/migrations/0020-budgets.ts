import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

/** Adjustments of balances, suspended accounts, and budgets. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema.alterTable('deposits').addColumn('reason', text).execute()
  await db.schema
    .alterTable('accounts')
    .addColumn('suspended', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema.alterTable('charges').addColumn('budgets', text).execute()
  await db.schema
    .createTable('budgets')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('user', text)
    .addColumn('tag', text)
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('period', text, (column) => column.notNull())
    .addColumn('timezone', text, (column) => column.notNull())
    .addColumn('hard', 'integer', (column) => column.notNull())
    .addColumn('soft', text, (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    .addColumn('deleted', 'integer', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('budget_notices')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('wallet', text, (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('type', text, (column) => column.notNull())
    .addColumn('subject', text, (column) => column.notNull())
    .addColumn('data', text, (column) => column.notNull())
    .addColumn('told', 'integer', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('budget_holds')
    .addColumn('request_id', text, (column) => column.notNull())
    .addColumn('wallet', text, (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_holds_pk', ['request_id', 'wallet'])
    .execute()
  await db.schema.createIndex('budget_notices_by_wallet').on('budget_notices').columns(['wallet']).execute()
  await db.schema.createIndex('budgets_by_account').on('budgets').columns(['account', 'id']).execute()
  await db.schema.createIndex('budgets_by_version').on('budgets').columns(['version']).execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const [table, wallet] of [
    ['leases', 'wallet'],
    ['wallets', 'id'],
  ] as const)
    await sql`delete from ${sql.table(table)} where ${sql.ref(wallet)} like 'budget:%'`.execute(db)
  await db.schema.dropTable('budget_holds').execute()
  await db.schema.dropTable('budget_notices').execute()
  await db.schema.dropTable('budgets').execute()
  await db.schema.alterTable('charges').dropColumn('budgets').execute()
  await db.schema.alterTable('accounts').dropColumn('suspended').execute()
  await db.schema.alterTable('deposits').dropColumn('reason').execute()
}
