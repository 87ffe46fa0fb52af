import { ConfigError } from 'express-model-gateway'
import { backupDatabase, openDatabase, restoreDatabase, undoMigrations } from 'express-model-gateway/sql'
import { readConfigFile } from '../config/config-file.ts'
import { configOf, readSettings } from '../config/environment.ts'
import { startable } from '../config/packages.ts'
import { errorText } from '../errors.ts'
import { retentionOf } from '../stores/stores.ts'

/** The options of a migration of the database of `DATABASE_URL`. */
export interface MigrateOptions {
  readonly config: string | undefined
  /** The last migration to stay; undefined = bring the database up to date. */
  readonly downTo: string | undefined
}

/**
 * Brings the database up to date, or undoes migrations, and prints what was done.
 *
 * @throws {ConfigError} if there is no database, or it cannot be migrated so.
 */
export async function migrateDatabase(
  env: NodeJS.ProcessEnv,
  { config, downTo }: MigrateOptions,
): Promise<void> {
  const { databaseUrl, databasePartitions: partitions } = readSettings(env, config)
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" has no tables to migrate'])
  try {
    if (downTo === undefined) {
      await (await openDatabase(databaseUrl, { partitions })).destroy()
      console.log('the database is up to date')
    } else {
      const undone = await undoMigrations(databaseUrl, downTo)
      for (const name of undone) console.log(`undone: ${name}`)
      if (undone.length === 0) console.log('there was nothing to undo')
    }
  } catch (error) {
    throw new ConfigError([`migrate: ${errorText(error)}`])
  }
}

/**
 * Exports and deletes what is older than the config's `retention`, once, and prints what was done.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 * @throws {ConfigError} if there is no config or no database, or rows cannot be exported or deleted.
 */
export async function pruneDatabase(env: NodeJS.ProcessEnv, configOption?: string): Promise<void> {
  const settings = readSettings(env, configOption)
  const { configFile, configOrigin, databaseUrl, databasePartitions: partitions } = settings
  if (configFile === undefined) throw new ConfigError(['prune: give it the config, as --config FILE'])
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" has no rows to delete'])
  const { value } = await readConfigFile(configFile, configOrigin)
  const config = configOf(value, settings)
  await startable(config)
  try {
    const db = await openDatabase(databaseUrl, { partitions })
    const retention = retentionOf(db, config, console)
    try {
      const { elsewhere, deleted, dropped } = await retention.run()
      if (elsewhere) console.log('another process is doing it')
      else console.log(`deleted: ${deleted.calls} calls, ${deleted.charges} charges`)
      for (const name of dropped) console.log(`dropped: ${name}`)
    } finally {
      await retention.close()
      await db.destroy()
    }
  } catch (error) {
    throw new ConfigError([`prune: ${errorText(error)}`])
  }
}

/** The file of a backup. */
export interface BackupOptions {
  readonly config: string | undefined
  readonly file: string
}

/**
 * Writes a backup of the database of `DATABASE_URL`, while gateways use it.
 *
 * @throws {ConfigError} if there is no database, or it cannot be written.
 */
export async function backUpDatabase(env: NodeJS.ProcessEnv, { config, file }: BackupOptions): Promise<void> {
  const { databaseUrl } = readSettings(env, config)
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" has nothing to keep'])
  try {
    await backupDatabase(databaseUrl, file, env)
    console.log(`the backup is complete: ${file}`)
  } catch (error) {
    throw new ConfigError([`backup: ${errorText(error)}`])
  }
}

/**
 * Puts a backup in the place of the database of `DATABASE_URL`.
 *
 * @throws {ConfigError} if the file is no such backup, or cannot be restored.
 */
export async function restoreFromBackup(
  env: NodeJS.ProcessEnv,
  { config, file }: BackupOptions,
): Promise<void> {
  const { databaseUrl } = readSettings(env, config)
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" cannot be restored'])
  try {
    const former = await restoreDatabase(databaseUrl, file, env)
    console.log(`the database is restored from ${file}`)
    if (former !== undefined) console.log(`the former one is ${former}`)
  } catch (error) {
    throw new ConfigError([`restore: ${errorText(error)}`])
  }
}
