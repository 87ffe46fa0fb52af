import { connectionsOf } from './postgres/postgres-dialect.ts'
import { threadOf } from './sqlite/sqlite-dialect.ts'
import type { Database } from './tables.ts'

/** The connections of a database handle. SQLite has one, to its thread. */
export interface ConnectionFigures {
  readonly used: number
  readonly idle: number
  /** Operations that wait for a connection, or on SQLite for the thread. */
  readonly waiting: number
}

/**
 * Returns the figures of the connections of a database, for metrics.
 *
 * @throws TypeError for a database that `openDatabase` has not opened.
 */
export function connectionFigures(db: Database): ConnectionFigures {
  const thread = threadOf(db)
  if (!thread) return connectionsOf(db).figures
  const { waiting } = thread
  return { used: Math.min(1, waiting), idle: waiting === 0 ? 1 : 0, waiting: Math.max(0, waiting - 1) }
}
