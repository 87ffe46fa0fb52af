import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, type MigrationResultSet, Migrator } from 'kysely/migration'
import type { Logger } from '../../../core/call/index.ts'
import { isPostgres } from './is-postgres.ts'
import { up as accountsKeysCalls } from './migrations/0001-accounts-keys-calls.ts'
import { up as idempotency } from './migrations/0002-idempotency.ts'
import { up as ledger } from './migrations/0003-ledger.ts'
import { up as adminChanges } from './migrations/0004-admin-changes.ts'
import { up as responses } from './migrations/0005-responses.ts'
import { up as videoTasks } from './migrations/0006-video-tasks.ts'
import { up as lineSwitchesTickets } from './migrations/0008-line-switches-tickets.ts'
import { up as failedCalls } from './migrations/0009-failed-calls.ts'
import { up as answers } from './migrations/0011-answers.ts'
import { up as keptThings } from './migrations/0012-kept-things.ts'
import * as restLifts from './migrations/0013-rest-lifts.ts'
import * as keptLists from './migrations/0014-kept-lists.ts'
import * as replayedAnswers from './migrations/0015-replayed-answers.ts'
import * as chargeCosts from './migrations/0016-charge-costs.ts'
import * as keys from './migrations/0017-keys.ts'
import * as attribution from './migrations/0018-attribution.ts'
import * as webhooks from './migrations/0019-webhooks.ts'
import * as budgets from './migrations/0020-budgets.ts'
import * as operators from './migrations/0021-operators.ts'
import * as usage from './migrations/0024-usage.ts'
import * as webhookPositions from './migrations/0025-webhook-positions.ts'
import * as partitionBounds from './migrations/0026-partition-bounds.ts'
import * as partitionChecks from './migrations/0026-partition-checks.ts'
import * as partitions from './migrations/0026-partitions.ts'
import * as carriedSpending from './migrations/0028-carried-spending.ts'
import * as leaseWatchers from './migrations/0029-lease-watchers.ts'
import * as regions from './migrations/0030-regions.ts'
import { isLocked } from './postgres/lock-timeout.ts'
import type { Database } from './tables.ts'

/** All migrations, in the order of their names. A released migration is never edited: the next change is a new one. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-accounts-keys-calls': { up: accountsKeysCalls },
  '0002-idempotency': { up: idempotency },
  '0003-ledger': { up: ledger },
  '0004-admin-changes': { up: adminChanges },
  '0005-responses': { up: responses },
  '0006-video-tasks': { up: videoTasks },
  '0008-line-switches-tickets': { up: lineSwitchesTickets },
  '0009-failed-calls': { up: failedCalls },
  '0011-answers': { up: answers },
  '0012-kept-things': { up: keptThings },
  '0013-rest-lifts': restLifts,
  '0014-kept-lists': keptLists,
  '0015-replayed-answers': replayedAnswers,
  '0016-charge-costs': chargeCosts,
  '0017-keys': keys,
  '0018-attribution': attribution,
  '0019-webhooks': webhooks,
  '0020-budgets': budgets,
  '0021-operators': operators,
  '0024-usage': usage,
  '0025-webhook-positions': webhookPositions,
  '0026-partition-bounds': partitionBounds,
  '0026-partition-checks': partitionChecks,
  '0026-partitions': partitions,
  '0028-carried-spending': carriedSpending,
  '0029-lease-watchers': leaseWatchers,
  '0030-regions': regions,
}

/** A migration whose name ends so changes what older versions read or write. All others only add. */
const BREAKING = '-breaking'

/** Who was told of which migrations. A gateway opens several handles with one logger. */
const told = new WeakMap<Logger, string>()

/** Whoever waited behind the migration goes on meanwhile. */
const AGAIN_AFTER_MS = 2000
const GIVE_UP_AFTER_MS = 600_000

/**
 * Migrates a database to the current version, each migration in a transaction of its own. Processes that start at the same
 * time wait for each other; one of them does the work. A migration that does not get a lock is tried again. A database that is newer than this code is used as it is, and that is logged, as long as the newer
 * migrations only added to it.
 *
 * @throws if a migration fails, or a newer one is breaking. Nothing is changed then.
 */
export async function migrate(db: Database, logger: Logger): Promise<void> {
  const found = await doneMigrations(db)
  const newer = newerOf(found)
  const breaking = newer.find((name) => name.endsWith(BREAKING))
  if (breaking !== undefined) throw new Error(`the database is newer than this version: it has ${breaking}`)
  // To find nothing to do, the migrator reads all tables and columns several times.
  const isCurrent = Object.keys(MIGRATIONS).every((name) => found.includes(name))
  const error = isCurrent ? undefined : await migrateUp(db, newer, found.length === 0, logger)
  // Another process may have migrated it further meanwhile.
  if (error && newerOf(await doneMigrations(db)).length > newer.length) return migrate(db, logger)
  if (error) throw error
  const names = newer.join()
  if (names === '' || told.get(logger) === names) return
  told.set(logger, names)
  logger.warn(
    { migrations: newer },
    'the database is newer than this version, which goes on without the additions',
  )
}

/**
 * Returns what went wrong; undefined if nothing did.
 *
 * @param newer what newer versions have done to the database.
 * @param isNew whether the database is new, so that nobody uses it.
 */
async function migrateUp(
  db: Database,
  newer: readonly string[],
  isNew: boolean,
  logger: Logger,
): Promise<unknown> {
  const done = Object.fromEntries(newer.map((name) => [name, { up: async () => {} }]))
  const migrations = { ...MIGRATIONS, ...done }
  const migrator = await migratorOf(db, migrations)
  for (;;) {
    const { error, results = [] } = await gettingLocks(logger, () =>
      isNew ? migrator.migrateToLatest() : migrator.migrateUp(),
    )
    if (error !== undefined || isNew || results.length === 0) return error
  }
}

/** Without a schema, Kysely would take the tables of another one for those of this one. */
async function migratorOf(db: Database, migrations: Readonly<Record<string, Migration>>): Promise<Migrator> {
  const schema = isPostgres(db) ? await schemaOf(db) : null
  return new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
    ...(schema !== null && { migrationTableSchema: schema }),
  })
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
    if (!isLocked(ended.error) || performance.now() - startedAt > GIVE_UP_AFTER_MS) return ended
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
export async function migrateDown(db: Database, last: string, logger: Logger): Promise<string[]> {
  if (!Object.hasOwn(MIGRATIONS, last))
    throw new Error(
      `there is no migration "${last}"; the last ones are ${Object.keys(MIGRATIONS).slice(-5).join(', ')}`,
    )
  const done = await doneMigrations(db)
  if (!done.includes(last)) throw new Error(`the database has not got as far as ${last}`)
  const stuck = done.find((name) => name > last && MIGRATIONS[name]?.down === undefined)
  if (stuck !== undefined) throw new Error(`${stuck} cannot be undone: restore a backup`)
  const migrator = await migratorOf(db, MIGRATIONS)
  const { error, results = [] } = await gettingLocks(logger, () => migrator.migrateTo(last))
  if (error) throw error
  return results.map(({ migrationName }) => migrationName)
}

function newerOf(done: readonly string[]): string[] {
  return done.filter((name) => !Object.hasOwn(MIGRATIONS, name))
}

/** Returns the names of the migrations that a database has; none for a new database. */
async function doneMigrations(db: Database): Promise<string[]> {
  const table = DEFAULT_MIGRATION_TABLE
  const found = isPostgres(db)
    ? sql`select 1 where to_regclass(${table}) is not null`
    : sql`select 1 from sqlite_schema where type = 'table' and name = ${table}`
  if ((await found.execute(db)).rows.length === 0) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(table)} order by name`.execute(db)
  return rows.map(({ name }) => name)
}
