import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Kysely, sql } from 'kysely'
import { consoleLogger, type Logger } from '../call/index.ts'
import { migrate } from './migrate.ts'
import { SqliteClient } from './sqlite-client.ts'
import { NodeSqliteDialect } from './sqlite-dialect.ts'
import type { Database, Tables } from './tables.ts'

/** Options of {@link openDatabase}. */
export interface OpenDatabaseOptions {
  /** Is told which database was opened. Defaults to the console, warnings and errors only. */
  logger?: Logger
  /**
   * Opens for reading only: no folder is made, nothing migrated. A second handle of this kind keeps long searches from
   * holding up the writes of the first. Defaults to false.
   */
  readOnly?: boolean
  /** How long a write waits for another process's, in milliseconds, off the event loop. Defaults to 5000. */
  busyTimeoutMs?: number
}

const MOST_STATEMENTS = 256

/**
 * Opens a database and brings its tables up to date. Close it with `await db.destroy()`.
 *
 * SQLite runs in a worker thread, in WAL mode with `synchronous = normal`: what was committed survives the death of
 * the process, and a power cut may cost the last moments. Several processes of one machine may share a file.
 *
 * Inside `db.transaction().execute(async (trx) => …)` ask `trx`, never `db`: its queries wait for the transaction to
 * end.
 *
 * @param url `sqlite:<path>`; the folder is made where it is missing.
 * @throws TypeError when the URL is of another kind.
 * @throws {SqliteError} when the file cannot be opened as a database.
 * @example
 * const db = await openDatabase('sqlite:.data/gateway.db')
 */
export async function openDatabase(url: string, options: OpenDatabaseOptions = {}): Promise<Database> {
  const { logger = consoleLogger, readOnly = false, busyTimeoutMs = 5000 } = options
  const file = resolve(sqlitePath(url))
  if (!readOnly) await mkdir(dirname(file), { recursive: true })
  const client = await SqliteClient.open({ file, readOnly, busyTimeoutMs, maxStatements: MOST_STATEMENTS })
  const db = new Kysely<Tables>({ dialect: new NodeSqliteDialect(client) })
  try {
    // A file that is no database shows at the first query, and Kysely closes only what it has used.
    await sql`select 1`.execute(db)
    if (!readOnly) await migrate(db)
  } catch (error) {
    await client.close()
    throw error
  }
  logger.info({ file, readOnly }, 'database opened')
  return db
}

function sqlitePath(url: string): string {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '' || path === ':memory:') {
    throw new TypeError('openDatabase: the URL must be "sqlite:<path>", such as "sqlite:.data/gateway.db"')
  }
  return path
}
