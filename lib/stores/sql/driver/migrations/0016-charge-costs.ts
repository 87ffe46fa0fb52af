import type { Kysely } from 'kysely'

/** What a charged call cost the operator, in nano-units. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('charges').addColumn('cost', 'bigint').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('charges').dropColumn('cost').execute()
}
