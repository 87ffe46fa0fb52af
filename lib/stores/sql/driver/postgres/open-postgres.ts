import { Kysely, sql } from 'kysely'
import { logOpened } from '../log-opened.ts'
import { isMigrated, migrate, migrateDown } from '../migrate.ts'
import type { Database, Tables } from '../tables.ts'
import { TABLE_LOCK_MS } from './lock-timeout.ts'
import { keepPartitions } from './partitions.ts'
import { connectionsOf, PooledPostgresDialect } from './postgres-dialect.ts'
import { PostgresConnections, type PostgresPoolOptions } from './postgres-pool.ts'

/** A migration reads and writes all rows of a table: one that takes longer than this would do so at the next start, too. */
const MIGRATION_TIMEOUT_MS = 24 * 3_600_000

/** @throws Error if Postgres cannot be reached, `pg` is not installed, or a migration fails. */
export async function openPostgres(options: PostgresPoolOptions): Promise<Database> {
  const { logger, readOnly } = options
  const db = await openLater(options)
  try {
    const database = await databaseName(db)
    if (!readOnly) {
      if (!(await isMigrated(db))) await whileMigrating(options, (migrating) => migrate(migrating, logger))
      await keepPartitions(db, logger)
    }
    await connectionsOf(db).openKept()
    logOpened(logger, { database })
    return db
  } catch (error) {
    await db.destroy()
    throw worded(error)
  }
}

/**
 * Opens a Postgres that may be away: it is connected to when it is first used, and not migrated.
 *
 * @throws TypeError if the URL is not valid.
 */
export async function openLater(options: PostgresPoolOptions): Promise<Database> {
  try {
    const connections = await PostgresConnections.open(options)
    return new Kysely<Tables>({ dialect: new PooledPostgresDialect(connections) })
  } catch (error) {
    // It may have the URL, and the URL a password.
    if ((error as { code?: unknown }).code === 'ERR_INVALID_URL')
      throw new TypeError('the postgres:// URL is not valid')
    throw error
  }
}

/** @throws Error if the database cannot store every text. */
async function databaseName(db: Database): Promise<string> {
  const asked = sql<{ name: string; encoding: string }>`
    select current_database() as name, current_setting('server_encoding') as encoding`
  const { rows } = await asked.execute(db)
  const { name = '', encoding } = rows[0] ?? {}
  if (encoding === 'UTF8') return name
  throw new Error(`the database "${name}" has the encoding ${encoding}; create it with the encoding UTF8`)
}

/** Runs a migration on a connection of its own, which has a longer timeout than the others. */
async function whileMigrating<Result>(
  options: PostgresPoolOptions,
  run: (db: Database) => Promise<Result>,
): Promise<Result> {
  const limits = { statementTimeoutMs: MIGRATION_TIMEOUT_MS, lockTimeoutMs: TABLE_LOCK_MS }
  const db = await openLater({ ...options, size: 1, ...limits })
  try {
    return await run(db)
  } finally {
    await db.destroy()
  }
}

/** Does {@link migrateDown} in the Postgres of a URL. */
export async function migratePostgresDown(options: PostgresPoolOptions, last: string): Promise<string[]> {
  try {
    return await whileMigrating(options, (db) => migrateDown(db, last, options.logger))
  } catch (error) {
    throw worded(error)
  }
}

function worded(error: unknown): unknown {
  // For a host with several addresses, of which none answers, the error has no message but a list of errors.
  return error instanceof AggregateError ? (error.errors[0] ?? error) : error
}
