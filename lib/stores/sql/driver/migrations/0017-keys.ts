import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

const TEXTS = ['name', 'note', 'tags', 'previous_hash'] as const
const TIMES = ['previous_until', 'last_used_at'] as const

/** What operators note about a key, when it was used last, and the secret before the current one. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of TEXTS) await db.schema.alterTable('keys').addColumn(name, byteText(db)).execute()
  for (const name of TIMES) await db.schema.alterTable('keys').addColumn(name, 'bigint').execute()
  await sql`create index keys_by_previous on keys (previous_hash) where previous_hash is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('keys_by_previous').execute()
  for (const name of [...TEXTS, ...TIMES]) await db.schema.alterTable('keys').dropColumn(name).execute()
}
