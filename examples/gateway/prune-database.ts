import { ConfigError } from 'express-model-gateway'
import { openDatabase } from 'express-model-gateway/sql'
import { readConfigFile } from './config-file.ts'
import { requireConfigPackages } from './config-packages.ts'
import { errorText } from './error-text.ts'
import { configOf, readSettings } from './settings.ts'
import { retentionOf } from './sql-stores.ts'

/**
 * Exports and deletes what is older than the config's `retention`, once, and prints what was done.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 * @throws {ConfigError} if there is no config or no database, or rows cannot be exported or deleted.
 */
export async function pruneDatabase(env: NodeJS.ProcessEnv, configOption?: string): Promise<void> {
  const settings = readSettings(env, configOption)
  const { configFile, configOrigin, databaseUrl } = settings
  if (configFile === undefined) throw new ConfigError(['prune: give it the config, as --config FILE'])
  if (databaseUrl === 'memory:') throw new ConfigError(['DATABASE_URL: "memory:" has no rows to delete'])
  const config = configOf(await readConfigFile(configFile, configOrigin), settings)
  await requireConfigPackages(config)
  try {
    const db = await openDatabase(databaseUrl)
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
