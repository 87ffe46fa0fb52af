import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { isPostgres } from '../../../lib/stores/sql/driver/database.ts'
import type { Database } from '../../../lib/stores/sql/index.ts'

/**
 * Returns a clock of the CPU time of this process, and of Postgres behind a handle of one connection, in milliseconds.
 * Only Linux reports the CPU time of Postgres.
 */
export async function cpuClock(db: Database): Promise<() => number> {
  const own = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  if (!isPostgres(db)) return own
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)
  const file = `/proc/${rows[0]?.pid}/schedstat`
  return () => own() + Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6
}
