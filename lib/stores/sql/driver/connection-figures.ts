import type { ConnectionFigures } from '../../../middleware/telemetry/gateway-states.ts'
import { connectionsOf } from './postgres/postgres-dialect.ts'
import { threadOf } from './sqlite/sqlite-dialect.ts'
import type { Database } from './tables.ts'

export type { ConnectionFigures }

/**
 * Returns the figures of the connections of a database, for metrics. SQLite has one, to its thread.
 *
 * @throws TypeError for a database that `openDatabase` has not opened.
 */
export function connectionFigures(db: Database): ConnectionFigures {
  const thread = threadOf(db)
  if (!thread) return connectionsOf(db).figures
  const { waiting } = thread
  return { used: Math.min(1, waiting), idle: waiting === 0 ? 1 : 0, waiting: Math.max(0, waiting - 1) }
}
