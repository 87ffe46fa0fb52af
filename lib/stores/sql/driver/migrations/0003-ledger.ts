import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('wallets')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('limited', 'integer', (column) => column.notNull())
    .addColumn('funds', 'bigint', (column) => column.notNull())
    .addColumn('spent', 'bigint', (column) => column.notNull())
    .addColumn('leased', 'bigint', (column) => column.notNull())
    .addColumn('overrun', 'bigint', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('deposits')
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('reference', text, (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('deposits_reference', ['account', 'reference'])
    .execute()

  await db.schema
    .createTable('leases')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('wallet', text, (column) => column.notNull())
    .addColumn('owner', text, (column) => column.notNull())
    .addColumn('held', 'bigint', (column) => column.notNull())
    .addColumn('seq', 'integer', (column) => column.notNull())
    .addColumn('last_moved', 'bigint', (column) => column.notNull())
    .addColumn('beats', 'integer', (column) => column.notNull())
    .addColumn('renewed_at', 'bigint', (column) => column.notNull())
    .addColumn('ended', text)
    .addColumn('ended_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('leases_open')
    .on('leases')
    .columns(['id'])
    .where('ended_at' as never, 'is', null)
    .execute()
  await db.schema
    .createIndex('leases_ended')
    .on('leases')
    .columns(['ended_at'])
    .where('ended_at' as never, 'is not', null)
    .execute()

  await db.schema
    .createTable('charges')
    .addColumn('request_id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('basis', text)
    .execute()
  await db.schema
    .createTable('voids')
    .addColumn('request_id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute()

  await openWalletsOfBefore(db)
  await db.schema.alterTable('accounts').dropColumn('balance').execute()
  await db.schema.alterTable('keys').dropColumn('quota').execute()
}

/**
 * Opens wallets for existing accounts and keys. Before, the balance was a column of the account and the quota one of
 * the key.
 */
async function openWalletsOfBefore(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into wallets (id, limited, funds, spent, leased, overrun)
    select 'account:' || id, case when balance is null then 0 else 1 end, coalesce(balance, 0), 0, 0, 0
    from accounts`.execute(db)
  await sql`
    insert into wallets (id, limited, funds, spent, leased, overrun)
    select 'key:' || id, case when quota is null then 0 else 1 end, coalesce(quota, 0), 0, 0, 0
    from keys`.execute(db)
  await sql`
    insert into deposits (account, reference, amount, at)
    select id, 'opening', balance, created_at from accounts where balance is not null`.execute(db)
}
