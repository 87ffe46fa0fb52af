import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Kysely, sql } from 'kysely'
import {
  DEFAULT_MIGRATION_LOCK_TABLE,
  DEFAULT_MIGRATION_TABLE,
  type Migration,
  type MigrationResultSet,
  Migrator,
} from 'kysely/migration'
import type { Logger } from '../../../core/call/index.ts'
import { isPostgres } from './database.ts'
import * as initial from './migrations/0001-initial.ts'
import { isLocked, limitTableLocks } from './postgres/lock-timeout.ts'
import type { Database } from './tables.ts'
import { isConflict } from './transact.ts'

export type Migrations = Readonly<Record<string, Migration>>

/** All migrations, in the order of their names. A released migration is never edited: the next change is a new one. */
export const MIGRATIONS: Migrations = {
  '0001-initial': initial,
}

/** A migration whose name ends so changes what older versions read or write. All others only add. */
const BREAKING = '-breaking'

/** The migrations that each logger has logged. A gateway opens several handles with one logger. */
const logged = new WeakMap<Logger, string>()

/** Transactions that waited behind the migration continue meanwhile. */
const AGAIN_AFTER_MS = 2000
const GIVE_UP_AFTER_MS = 600_000

/**
 * Migrates a database to the current version, each migration in a transaction of its own. Processes that start at the same
 * time wait for each other; one of them does the work. A migration that does not get a lock is tried again. A database that is newer than this code is used as it is, and that is logged, as long as the newer
 * migrations only added to it.
 *
 * @throws if a migration fails, a newer one is breaking, or the database was made before the first release. Nothing is changed then.
 */
export async function migrate(
  db: Database,
  logger: Logger,
  migrations: Migrations = MIGRATIONS,
): Promise<void> {
  const found = await doneMigrations(db)
  const newer = newerOf(found, migrations)
  const breaking = newer.find((name) => name.endsWith(BREAKING))
  if (breaking !== undefined) throw new Error(`the database is newer than this version: it has ${breaking}`)
  // To find nothing to do, the migrator reads all tables and columns several times.
  const isCurrent = Object.keys(migrations).every((name) => found.includes(name))
  const error = isCurrent
    ? undefined
    : await migrateUp(db, { migrations, newer, isNew: found.length === 0, logger })
  // Another process may have migrated it further meanwhile.
  if (error && (await doneMigrations(db)).length > found.length) return migrate(db, logger, migrations)
  if (error) throw error
  const names = newer.join()
  if (names === '' || logged.get(logger) === names) return
  logged.set(logger, names)
  logger.warn(
    { migrations: newer },
    'the database is newer than this version, which goes on without the additions',
  )
}

interface MigrateUp {
  readonly migrations: Migrations
  /** The migrations of newer versions that the database has. */
  readonly newer: readonly string[]
  /** Whether the database is new, and therefore not in use. */
  readonly isNew: boolean
  readonly logger: Logger
}

/** Returns what went wrong; undefined if nothing did. */
async function migrateUp(db: Database, { migrations, newer, isNew, logger }: MigrateUp): Promise<unknown> {
  const done = Object.fromEntries(newer.map((name) => [name, { up: async () => {} }]))
  const migrator = await migratorOf(db, { ...migrations, ...done })
  for (;;) {
    const { error, results = [] } = await gettingLocks(logger, () =>
      isNew ? migrator.migrateToLatest() : migrator.migrateUp(),
    )
    if (error !== undefined || isNew || results.length === 0) return error
  }
}

/** Without a schema, Kysely would take the tables of another one for those of this one. */
async function migratorOf(db: Database, migrations: Migrations): Promise<Migrator> {
  const schema = isPostgres(db) ? await schemaOf(db) : null
  return new Migrator({
    db,
    provider: { getMigrations: async () => (isPostgres(db) ? oneAtATime(migrations) : migrations) },
    ...(schema !== null && { migrationTableSchema: schema }),
  })
}

/** Returns the migrations, each of which one process at a time does: it locks a row until the end of its transaction. */
function oneAtATime(migrations: Migrations): Migrations {
  const behind = (name: string, done: boolean, run: Migration['up']) => async (trx: Kysely<unknown>) => {
    await waitForTurn(trx)
    const { rows } =
      await sql`select 1 from ${sql.table(DEFAULT_MIGRATION_TABLE)} where name = ${name}`.execute(trx)
    if (rows.length > 0 !== done) throw new Error(`another process has migrated meanwhile (${name})`)
    await limitTableLocks(trx)
    await run(trx)
  }
  return Object.fromEntries(
    Object.entries(migrations).map(([name, { up, down }]) => [
      name,
      { up: behind(name, false, up), ...(down && { down: behind(name, true, down) }) },
    ]),
  )
}

async function waitForTurn(trx: Kysely<unknown>): Promise<void> {
  await sql`select set_config('lock_timeout', ${sql.lit(`${GIVE_UP_AFTER_MS}`)}, true)`.execute(trx)
  await sql`select id from ${sql.table(DEFAULT_MIGRATION_LOCK_TABLE)} for update`.execute(trx)
}

/** Returns the schema that has the migrations, or will have them; null if there is none to make tables in. */
async function schemaOf(db: Database): Promise<string | null> {
  const { rows } = await sql<{ name: string | null }>`
    select coalesce((
      select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where pg_class.oid = to_regclass(${DEFAULT_MIGRATION_TABLE})
    ), current_schema()) as name`.execute(db)
  return rows[0]?.name ?? null
}

/** Tries a step again that did not get a lock. */
async function gettingLocks(
  logger: Logger,
  step: () => Promise<MigrationResultSet>,
): Promise<MigrationResultSet> {
  const startedAt = performance.now()
  for (let tries = 1; ; tries++) {
    const ended = await step()
    const mayGetThem = isLocked(ended.error) || isConflict(ended.error)
    if (!mayGetThem || performance.now() - startedAt > GIVE_UP_AFTER_MS) return ended
    const migration = ended.results?.find(({ status }) => status === 'Error')?.migrationName
    if (tries === 1)
      logger.warn({ migration }, 'a migration waits for a lock that somebody holds: it is tried again')
    await sleep(AGAIN_AFTER_MS)
  }
}

/**
 * Undoes the migrations after the named one, in one transaction, and tries again where it does not get a lock. Stop all
 * processes that use the database first.
 *
 * @returns the names of what was undone, the last first.
 * @throws if there is no migration of that name, one that was done later cannot be undone, or the database is newer.
 */
export async function migrateDown(
  db: Database,
  last: string,
  logger: Logger,
  migrations: Migrations = MIGRATIONS,
): Promise<string[]> {
  if (!Object.hasOwn(migrations, last))
    throw new Error(
      `there is no migration "${last}"; the last ones are ${Object.keys(migrations).slice(-5).join(', ')}`,
    )
  const done = await doneMigrations(db)
  if (!done.includes(last)) throw new Error(`the database has not got as far as ${last}`)
  const stuck = done.find((name) => name > last && migrations[name]?.down === undefined)
  if (stuck !== undefined) throw new Error(`${stuck} cannot be undone: restore a backup`)
  const migrator = await migratorOf(db, migrations)
  const { error, results = [] } = await gettingLocks(logger, () => migrator.migrateTo(last))
  if (error) throw error
  return results.map(({ migrationName }) => migrationName)
}

function newerOf(done: readonly string[], migrations: Migrations): string[] {
  return done.filter((name) => !Object.hasOwn(migrations, name))
}

/**
 * Returns the names of the migrations that a database has; none for a new database.
 *
 * @throws if it was made before the first release: its ledger may contain shares of regions, amounts that no charge explains.
 */
async function doneMigrations(db: Database): Promise<string[]> {
  const table = DEFAULT_MIGRATION_TABLE
  const tables = isPostgres(db)
    ? sql<{ name: string }>`
        select name from (values ('shares'), (${table})) as tables (name) where to_regclass(name) is not null`
    : sql<{ name: string }>`
        select name from sqlite_schema where type = 'table' and name in ('shares', ${table})`
  const existing = (await tables.execute(db)).rows.map(({ name }) => name)
  if (existing.includes('shares'))
    throw new Error(
      'it contains shares of regions, which this version does not support: start with a new database',
    )
  if (!existing.includes(table)) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(table)} order by name`.execute(db)
  const names = rows.map(({ name }) => name)
  const [first] = names
  if (first !== undefined && !names.includes('0001-initial'))
    throw new Error(`it was made before the first release (${first}): start with a new database`)
  return names
}

/**
 * Returns whether a database has the migrations of this version and no others.
 *
 * @throws if it was made before the first release.
 */
export async function isMigrated(db: Database): Promise<boolean> {
  return isDeepStrictEqual(await doneMigrations(db), Object.keys(MIGRATIONS))
}
