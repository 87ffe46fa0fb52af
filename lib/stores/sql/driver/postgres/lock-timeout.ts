import { type Kysely, sql } from 'kysely'

/** How long a statement waits for the lock of a table, in milliseconds: whoever uses the table waits behind it. */
export const TABLE_LOCK_MS = 100

/** Whether Postgres gave up because somebody else had locked a row for longer than `lockTimeoutMs`, or as part of a deadlock. */
export function isLocked(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '55P03' || code === '40P01'
}

/**
 * Has a connection wait for the locks of tables no longer than others can do without the tables. Where an autovacuum has such a
 * lock it waits for longer: Postgres ends that for it, but only after its `deadlock_timeout`.
 */
export async function limitTableLocks(db: Kysely<unknown>): Promise<void> {
  // Without a user, it is an autovacuum.
  await sql`
    select set_config('lock_timeout', case when exists (
      select 1 from pg_locks join pg_stat_activity using (pid)
      where datname = current_database() and usesysid is null and pg_table_is_visible(relation)
    ) then ceil(1000 * extract(epoch from current_setting('deadlock_timeout')::interval) + 500)::text
    else ${sql.lit(`${TABLE_LOCK_MS}`)} end, false)`.execute(db)
}
