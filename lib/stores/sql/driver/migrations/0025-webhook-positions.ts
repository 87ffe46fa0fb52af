import { type Kysely, sql } from 'kysely'

/** The last position of a delivery, which is not used again when the delivery is deleted. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhook_positions')
    .addColumn('last', 'bigint', (column) => column.notNull())
    .execute()
  await sql`insert into webhook_positions (last)
    select coalesce(max(position), 0) from webhook_deliveries`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('webhook_positions').execute()
}
