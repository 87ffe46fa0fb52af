import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

/** Operators with tokens of their own, and the sessions of those who signed in at a provider. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('operators')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('name', text, (column) => column.notNull().unique())
    .addColumn('role', text, (column) => column.notNull())
    .addColumn('token_hash', text, (column) => column.notNull().unique())
    .addColumn('previous_hash', text)
    .addColumn('previous_until', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('operator_sessions')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('secret_hash', text, (column) => column.notNull().unique())
    .addColumn('name', text, (column) => column.notNull())
    .addColumn('roles', text, (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('operator_sessions').execute()
  await db.schema.dropTable('operators').execute()
}
