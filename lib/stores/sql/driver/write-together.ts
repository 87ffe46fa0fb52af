import { connectionsOf } from './postgres/postgres-pool.ts'
import type { RowWrite } from './row-statement.ts'
import { threadOf } from './sqlite/sqlite-dialect.ts'
import type { Database } from './tables.ts'

/** Whether a statement failed because it has not written all its rows: by a division by zero. */
export function isNotWritten(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '22012'
}

/**
 * Writes rows in a transaction of their own: on SQLite with one message to its thread, on Postgres in one round trip.
 * The statements run in their order.
 *
 * @returns false if a row could not be written; then nothing is written.
 */
export async function writeTogether(db: Database, writes: readonly RowWrite[]): Promise<boolean> {
  const needed = writes.filter(({ rows }) => rows.length > 0)
  if (needed.length === 0) return true
  const thread = threadOf(db)
  if (thread) {
    const work = needed.map(({ statement: { sqlite, loose }, rows }) => ({ sql: sqlite, rows, loose }))
    return db.connection().execute(() => thread.write(work))
  }
  const client = await connectionsOf(db).connect()
  try {
    await client.transact(needed)
    return true
  } catch (error) {
    if (isNotWritten(error)) return false
    throw error
  } finally {
    client.release()
  }
}
