import { ConfigError } from 'express-model-gateway'
import { openDatabase, undoMigrations } from 'express-model-gateway/sql'
import { errorText } from './error-text.ts'
import { readSettings } from './settings.ts'

/** What to do with the database of `DATABASE_URL`. */
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
  const { databaseUrl } = readSettings(env, config)
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" has no tables to migrate'])
  try {
    if (downTo === undefined) {
      await (await openDatabase(databaseUrl)).destroy()
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
