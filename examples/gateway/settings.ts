import { readFile } from 'node:fs/promises'
import { ConfigError } from 'express-model-gateway'

/** What the environment says. */
export interface Settings {
  readonly port: number
  readonly host: string
  /** Path of the config file; undefined = the demo config. */
  readonly configFile: string | undefined
  readonly databaseUrl: string
  readonly logLevel: string
  /** Overrides the config's `region`. */
  readonly region: string | undefined
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * Reads the settings from the environment.
 *
 * @throws {ConfigError} one line per variable that is unusable.
 */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const faults: string[] = []
  const port = Number(env.PORT ?? 8787)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    faults.push(`PORT: "${env.PORT}" is not a port number`)
  const logLevel = env.LOG_LEVEL ?? 'info'
  if (!LOG_LEVELS.includes(logLevel)) faults.push(`LOG_LEVEL: must be one of ${LOG_LEVELS.join(', ')}`)
  const databaseUrl = env.DATABASE_URL ?? 'sqlite:.data/gateway.db'
  if (databaseUrl !== 'memory:' && !/^sqlite:./.test(databaseUrl)) {
    // Not the value: a URL may hold a password.
    faults.push('DATABASE_URL: must be "sqlite:<path>" or "memory:"')
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    port,
    host: env.HOST ?? '127.0.0.1',
    configFile: env.GATEWAY_CONFIG,
    databaseUrl,
    logLevel,
    region: env.GATEWAY_REGION,
  }
}

/**
 * Reads a config file.
 *
 * @throws {ConfigError} when it cannot be read or is not JSON.
 */
export async function readConfigFile(path: string): Promise<unknown> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new ConfigError([
      `GATEWAY_CONFIG: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    ])
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError([`${path}: is not valid JSON (${(error as Error).message})`])
  }
}
