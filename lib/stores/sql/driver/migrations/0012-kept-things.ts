import { type Kysely, sql } from 'kysely'
import { byteText } from '../byte-text.ts'

/** How long responses could be found. */
const RESPONSES_KEPT_MS = 30 * 86_400_000

/**
 * Takes over what was known of responses. Their table stays: processes of the version before may still read it, and its
 * rows are of no use once these processes are gone.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('kept_things')
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('line', text, (column) => column.notNull())
    .addColumn('model', text)
    .addColumn('tokens', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addPrimaryKeyConstraint('kept_things_key', ['kind', 'id', 'account'])
    .execute()
  await sql`
    insert into kept_things (kind, id, account, line, model, tokens, created_at, expires_at)
    select 'response', id, account, line, model, tokens, created_at,
      created_at + ${sql.lit(RESPONSES_KEPT_MS)}
    from responses`.execute(db)
  await sql`create index kept_things_by_expiry on kept_things (expires_at) where expires_at is not null`.execute(
    db,
  )
}
