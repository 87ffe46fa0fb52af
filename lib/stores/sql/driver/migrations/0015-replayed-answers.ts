import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

/** Answers for repetitions of a request with an Idempotency-Key. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('idempotency').addColumn('answer', byteText(db)).execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('idempotency').dropColumn('answer').execute()
}
