import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

/** The places of the processes that look for leases nobody renews. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('lease_watchers')
    .addColumn('place', 'integer', (column) => column.primaryKey())
    .addColumn('owner', byteText(db))
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .execute()
  await sql`insert into lease_watchers (place, seen_at) values (1, 0), (2, 0), (3, 0)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('lease_watchers').execute()
}
