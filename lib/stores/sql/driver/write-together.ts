import { connectionsOf } from './postgres/postgres-dialect.ts'
import type { RowWrite } from './row-statement.ts'
import { threadOf } from './sqlite/sqlite-dialect.ts'
import type { Database } from './tables.ts'
import { retryConflicts } from './transact.ts'

/** Whether a statement failed because it has not written all its rows: by a division by zero. */
function isNotWritten(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '22012'
}

const MAX_TRIES = 5

/** The writes that follow from what was read, and the result if they are made. */
export interface Planned<Result> {
  readonly writes: readonly RowWrite[]
  readonly result: Result
}

/**
 * Reads rows, and writes what follows from them. The writes must fail if the rows have changed meanwhile; then all is
 * repeated. So no lock is held during a round trip, however far the database is away.
 *
 * @throws {RowsHaveChanged} if that goes on.
 */
export async function writePlanned<Result>(
  db: Database,
  plan: () => Promise<Planned<Result>>,
  maxTries = MAX_TRIES,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const { writes, result } = await plan()
    if (await writeTogether(db, writes)) return result
    if (tries === maxTries) throw new RowsHaveChanged()
  }
}

/** Thrown if others change the rows that an operation reads each time before it writes. */
export class RowsHaveChanged extends Error {
  override readonly name = 'RowsHaveChanged'

  constructor() {
    super('others change the same rows again and again')
  }
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
    await retryConflicts(() => client.transact(needed))
    return true
  } catch (error) {
    if (isNotWritten(error)) return false
    throw error
  } finally {
    client.release()
  }
}
