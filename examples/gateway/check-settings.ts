import { ConfigError } from 'express-model-gateway/config'
import { readConfigFile } from './config-file.ts'
import { demoConfig } from './demo-config.ts'
import { configOf, readSettings } from './settings.ts'
import { startable } from './startable-config.ts'

/**
 * Prints each fault of the environment and of the config, or that there is none. Returns the exit code.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 */
export async function printFaults(env: NodeJS.ProcessEnv, configOption?: string): Promise<number> {
  const faults: string[] = []
  const settings = collect(faults, () => readSettings(env, configOption))
  const configFile = configOption ?? env.GATEWAY_CONFIG
  const origin = configOption === undefined ? 'GATEWAY_CONFIG' : '--config'
  const source =
    configFile === undefined
      ? demoConfig('http://127.0.0.1', 'demo')
      : await readConfigFile(configFile, origin).catch((error: unknown) => note(faults, error))
  const region = env.GATEWAY_REGION || undefined
  const config = source && collect(faults, () => configOf(source, settings ?? { region }, env))
  if (config) await startable(config, settings?.regions).catch((error: unknown) => note(faults, error))
  for (const fault of faults) console.error(fault)
  if (faults.length === 0) console.log(`${configFile ?? 'the demo config'} is valid`)
  return faults.length === 0 ? 0 : 1
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
