import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Kysely, sql } from 'kysely'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import {
  aLogger,
  aWholeNumber,
  checkOptions,
  kindOf,
  MAX_TIMER_MS,
  type OptionRules,
  oneOf,
} from '../../../core/options/index.ts'
import type { ConnectionFigures } from '../../../core/store-guard/index.ts'
import { logOpened } from './log-opened.ts'
import { migrate, migrateDown } from './migrate.ts'
import { migratePostgresDown, openPostgres } from './postgres/open-postgres.ts'
import { connectionsOf } from './postgres/postgres-dialect.ts'
import type { PostgresPoolOptions } from './postgres/postgres-pool.ts'
import { SqliteClient } from './sqlite/sqlite-client.ts'
import { NodeSqliteDialect, threadOf } from './sqlite/sqlite-dialect.ts'
import type { Database, Tables } from './tables.ts'

/** Options of {@link openDatabase}. */
export interface OpenDatabaseOptions {
  /** Logs which database was opened. Defaults to the console, warnings and errors only. */
  logger?: Logger
  /**
   * Opens the database for reading only: no folder is created and nothing is migrated. With a second, read-only handle,
   * long searches do not block the writes of the first. Defaults to false.
   */
  readOnly?: boolean
  /**
   * SQLite, with `readOnly`: opens the file with the first query, because the thread that a handle has takes 15 MB. A file that
   * cannot be opened then fails that query, and the next one tries again. Defaults to false.
   */
  atFirstQuery?: boolean
  /**
   * SQLite: how long a write waits for a write of another process, in milliseconds, off the event loop. Defaults to
   * 5000.
   */
  busyTimeoutMs?: number
  /** Postgres: most connections at a time. Defaults to 10. */
  poolSize?: number
  /**
   * Postgres: how long to wait for a connection, in milliseconds: for a new one, or for one of the pool if all are in
   * use. Defaults to 2000.
   */
  connectTimeoutMs?: number
  /**
   * Postgres: how long a statement may take, in milliseconds, including waits for locks, and how long a transaction may
   * be idle. Defaults to 5000.
   */
  statementTimeoutMs?: number
  /**
   * Postgres: how long a statement may wait for a row that another transaction has locked, in milliseconds. A statement
   * that does not get it fails, and is repeated where that helps; meanwhile nothing else waits behind it. Defaults to 1000.
   */
  lockTimeoutMs?: number
  /**
   * Postgres: creates the tables that grow with the calls in parts, one for each week or month, which are dropped whole. It is
   * chosen when the tables are created, for Postgres itself: distributed databases divide tables on their own. Defaults to false:
   * old rows are deleted in batches.
   */
  partitions?: boolean
}

const MAX_STATEMENTS = 256

const IN_MEMORY = ':memory:'

const someTime = aWholeNumber(`whole milliseconds from 0 to ${MAX_TIMER_MS} (24 days)`, 0, MAX_TIMER_MS)
const RULES: OptionRules<OpenDatabaseOptions> = {
  logger: aLogger,
  readOnly: oneOf(true, false),
  atFirstQuery: oneOf(true, false),
  busyTimeoutMs: someTime,
  poolSize: aWholeNumber('a whole number from 1 on', 1),
  connectTimeoutMs: someTime,
  statementTimeoutMs: someTime,
  lockTimeoutMs: someTime,
  partitions: oneOf(true, false),
}

/**
 * Opens a database and migrates its tables. Close it with `await db.destroy()`.
 *
 * SQLite runs in a worker thread, in WAL mode with `synchronous = normal`: committed data survives the death of the
 * process, and a power failure may lose the last moments. Several processes of one machine may share a file.
 *
 * `sqlite::memory:` is a database of this one handle, which ends with it.
 *
 * Postgres is accessed through a pool of connections of the package `pg`, which you install. No statement waits for
 * ever: one that is not answered in time throws, and it is unknown then whether it took effect.
 *
 * Inside `db.transaction().execute(async (trx) => …)` use `trx`, never `db`: with SQLite, a query of `db` waits for the
 * transaction to end; with Postgres, it is not part of the transaction.
 *
 * @param url `sqlite:<path>`, whose folder is created if it is missing, or `postgres://user:password@host:5432/name`. Instead of
 * one host there may be several, `a:5432,b:5432`: a connection goes to the first that takes writes, from the last that did on.
 * A database of a newer version is used as it is, with a warning, unless one of its migrations says that it may not.
 *
 * @throws TypeError if the URL is of another kind, or if a database in memory is opened for reading only.
 * @throws {SqliteError} if the file cannot be opened as a database.
 * @throws Error if Postgres cannot be reached or `pg` is not installed; an error of Postgres has a `code` of five
 *   characters.
 * @example
 * const db = await openDatabase('sqlite:.data/gateway.db')
 * @example
 * const db = await openDatabase('postgres://gateway:secret@db.internal/gateway', { poolSize: 20 })
 */
export async function openDatabase(url: string, options: OpenDatabaseOptions = {}): Promise<Database> {
  if (typeof url !== 'string')
    throw new TypeError(
      `openDatabase: its URL must be a string, such as "sqlite:gateway.db", not ${kindOf(url)}`,
    )
  checkOptions('openDatabase', options, RULES)
  if (isPostgresUrl(url)) return openPostgres(postgresOptions(url, options))
  return openSqlite(sqlitePath(url), options)
}

/**
 * Undoes the migrations of a database after the named one, for a version that came before them. End all processes that
 * use it first, and make a backup: what a migration added is lost.
 *
 * @returns the names of the migrations that were undone, the last first.
 * @throws Error if there is no migration of that name, or one that came later cannot be undone. Nothing is changed then.
 * @example
 * await undoMigrations('sqlite:.data/gateway.db', '0001-initial')
 */
export async function undoMigrations(url: string, last: string): Promise<string[]> {
  if (isPostgresUrl(url)) return migratePostgresDown(postgresOptions(url, {}), last)
  const { db, client } = await connectSqlite(resolve(sqlitePath(url)), {})
  try {
    return await migrateDown(db, last, quietLogger())
  } finally {
    await client.close()
  }
}

function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//.test(url)
}

function postgresOptions(url: string, options: OpenDatabaseOptions): PostgresPoolOptions {
  const { readOnly = false, poolSize = 10, partitions = false } = options
  const { connectTimeoutMs = 2000, statementTimeoutMs = 5000, lockTimeoutMs = 1000 } = options
  const timeouts = { connectTimeoutMs, statementTimeoutMs, lockTimeoutMs }
  return { url, logger: quietLogger(options.logger), readOnly, size: poolSize, partitions, ...timeouts }
}

async function connectSqlite(file: string, options: OpenDatabaseOptions) {
  const { readOnly = false, atFirstQuery = false, busyTimeoutMs = 5000 } = options
  const settings = { file, readOnly, busyTimeoutMs, maxStatements: MAX_STATEMENTS }
  const client = readOnly && atFirstQuery ? new SqliteClient(settings) : await SqliteClient.open(settings)
  return { client, db: new Kysely<Tables>({ dialect: new NodeSqliteDialect(client) }) }
}

async function openSqlite(path: string, options: OpenDatabaseOptions): Promise<Database> {
  const { readOnly = false, atFirstQuery = false } = options
  if (readOnly && path === IN_MEMORY)
    throw new TypeError('openDatabase: "sqlite::memory:" has no other handle: open it without readOnly')
  const logger = quietLogger(options.logger)
  const inMemory = path === IN_MEMORY
  const file = inMemory ? path : resolve(path)
  if (!readOnly && !inMemory) await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const { client, db } = await connectSqlite(file, options)
  if (readOnly && atFirstQuery) return db
  try {
    // A file that is no database fails at the first query, and Kysely closes only what it has used.
    await sql`select 1`.execute(db)
    if (!readOnly) await migrate(db, logger)
  } catch (error) {
    await client.close()
    throw error
  }
  logOpened(logger, { file })
  return db
}

function sqlitePath(url: string): string {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '') {
    throw new TypeError(
      'openDatabase: the URL must be "sqlite:<path>", such as "sqlite:.data/gateway.db", or "postgres://…"',
    )
  }
  return path
}

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
