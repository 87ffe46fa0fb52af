import { ConfigError, ConfigWarnings, configHints, type LoadedConfig } from 'express-model-gateway/config'
import { readConfigFile, withPlaces } from '../config/config-file.ts'
import { configOf, readSettings } from '../config/environment.ts'
import { startable } from '../config/packages.ts'
import { demoConfig } from '../demo-models/config.ts'
import { importOpenings } from '../openings.ts'

/**
 * Prints each fault of the environment and of the config, or that there is none. Returns the exit code.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 * @param use the path of a module with middlewares of your own.
 */
export async function printFaults(
  env: NodeJS.ProcessEnv,
  configOption?: string,
  use?: string,
): Promise<number> {
  const faults: string[] = []
  const settings = collect(faults, () => readSettings(env, configOption))
  const configFile = configOption ?? env.GATEWAY_CONFIG
  const origin = configOption === undefined ? 'GATEWAY_CONFIG' : '--config'
  const source =
    configFile === undefined
      ? demoConfig('http://127.0.0.1', 'demo')
      : await readConfigFile(configFile, origin).then(
          ({ value }) => value,
          (error: unknown) => note(faults, error),
        )
  const region = env.GATEWAY_REGION || undefined
  const ofConfig: string[] = []
  const config = source && collect(ofConfig, () => configOf(source, settings ?? { region }, env))
  faults.push(...(configFile === undefined ? ofConfig : await withPlaces(ofConfig, configFile)))
  if (use !== undefined) await importOpenings(use).catch((error: unknown) => note(faults, error))
  if (config) await startable(config, settings?.redisUrl).catch((error: unknown) => note(faults, error))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) return 1
  const hints = config ? [...configHints(config.catalog), ...unpricedHints(config)] : []
  for (const hint of hints) console.log(`hint: ${hint}`)
  console.log(`${configFile ?? 'the demo config'} is valid`)
  return 0
}

function unpricedHints(config: LoadedConfig): string[] {
  const warnings = new ConfigWarnings(config)
  warnings.addAccounts(config.accounts)
  warnings.addKeys(config.keys)
  return warnings
    .unpriced()
    .map((id) => `models: "${id}" has no price; its calls cost prepaid accounts nothing`)
}

function collect<Value>(faults: string[], read: () => Value): Value | undefined {
  try {
    return read()
  } catch (error) {
    return note(faults, error)
  }
}

function note(faults: string[], error: unknown): undefined {
  if (!(error instanceof ConfigError)) throw error
  faults.push(...error.faults)
}
