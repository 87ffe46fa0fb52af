import { type Kysely, sql } from 'kysely'

/** Lists of an account's things, newest first or oldest first. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index kept_things_by_account on kept_things (account, kind, created_at, id)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index kept_things_by_account`.execute(db)
}
