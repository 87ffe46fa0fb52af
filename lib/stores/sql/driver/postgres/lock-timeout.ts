import { type Kysely, sql } from 'kysely'

/** How long a statement waits for the lock of a table, in milliseconds: all who use the table wait behind it. */
export const TABLE_LOCK_MS = 100

/** Whether Postgres gave up because another transaction had locked a row for longer than `lockTimeoutMs`, or as part of a deadlock. */
export function isLocked(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '55P03' || code === '40P01'
}

/**
 * Has a transaction wait for the locks of tables no longer than others can do without the tables. While an autovacuum runs, which
 * may have such a lock, it waits for longer: Postgres ends that for it, but only after its `deadlock_timeout`.
 */
export async function limitTableLocks(trx: Kysely<unknown>): Promise<void> {
  // An autovacuum has no user.
  await sql`
    select set_config('lock_timeout', case when exists (
      select 1 from pg_stat_activity where datname = current_database() and usesysid is null
    ) then ceil(1000 * extract(epoch from coalesce(current_setting('deadlock_timeout', true), '1s')::interval) + 500)::text
    else ${sql.lit(`${TABLE_LOCK_MS}`)} end, true)`.execute(trx)
}
