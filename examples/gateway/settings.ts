import { isIPv4 } from 'node:net'
import { ConfigError, type GatewayConfig, loadConfig } from 'express-model-gateway'
import type { ConfigOrigin } from './config-file.ts'
import { type ObservabilitySettings, readObservability } from './observability-settings.ts'
import { redisUrlFault } from './redis-url.ts'

/** The settings from the environment. */
export interface Settings {
  readonly port: number
  readonly host: string
  /** Path of the config file; undefined = the demo config. */
  readonly configFile: string | undefined
  readonly configOrigin: ConfigOrigin
  readonly databaseUrl: string
  /** The Redis that counts limits for several processes; undefined = limits are counted in this process. */
  readonly redisUrl: string | undefined
  /** The token of the admin API; undefined = there is no admin API. */
  readonly adminToken: string | undefined
  readonly logLevel: string
  readonly observability: ObservabilitySettings
  /** Overrides the config's `region`. */
  readonly region: string | undefined
  /** The time between "not ready" and the end of listening, in milliseconds. */
  readonly noticeMs: number
  /** The number of worker processes; undefined = this process serves alone. */
  readonly workers: number | undefined
}

/** The database without DATABASE_URL. */
export const DATABASE = 'sqlite:.data/gateway.db'
/** A separate database: the demo's key is public, and a key stays valid in the database that it was added to. */
const DEMO_DATABASE = 'sqlite:.data/demo.db'

/** More than any machine has processors; a typo must not bring the machine down. */
const MAX_WORKERS = 256

/** Longer than a balancer needs to notice that checks of /readyz fail. */
const NOTICE_MS = 5000
const MAX_NOTICE_MS = 120_000

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** The minimum length where other machines can reach the gateway: the token gives access to all money. */
const MIN_ADMIN_TOKEN = 16

/**
 * Reads the settings from the environment.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 * @throws {ConfigError} with one fault per invalid variable.
 */
export function readSettings(env: NodeJS.ProcessEnv, configOption?: string): Settings {
  const faults: string[] = []
  const port = Number(env.PORT ?? 8787)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    faults.push(`PORT: "${env.PORT}" is not a port number`)
  const logLevel = env.LOG_LEVEL ?? 'info'
  if (!LOG_LEVELS.includes(logLevel)) faults.push(`LOG_LEVEL: must be one of ${LOG_LEVELS.join(', ')}`)
  const configFile = configOption ?? env.GATEWAY_CONFIG
  const databaseUrl = env.DATABASE_URL ?? (configFile === undefined ? DEMO_DATABASE : DATABASE)
  const databaseFault = databaseUrlFault(databaseUrl)
  if (databaseFault) faults.push(`DATABASE_URL: ${databaseFault}`)
  const redisUrl = env.REDIS_URL || undefined
  const redisFault = redisUrl && redisUrlFault(redisUrl)
  if (redisFault) faults.push(`REDIS_URL: ${redisFault}`)
  const adminToken = env.ADMIN_TOKEN || undefined
  const observability = readObservability(env, faults)
  const tokenFault = adminToken && adminTokenFault(adminToken)
  if (tokenFault) faults.push(`ADMIN_TOKEN: ${tokenFault}`)
  const host = env.HOST ?? '127.0.0.1'
  if (adminToken !== undefined && adminToken.length < MIN_ADMIN_TOKEN && !isLoopback(host)) {
    faults.push(
      `ADMIN_TOKEN: must be at least ${MIN_ADMIN_TOKEN} characters long where HOST is not a loopback address`,
    )
  }
  const workers = env.WORKERS ? Number(env.WORKERS) : undefined
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 1 && workers <= MAX_WORKERS))
    faults.push(`WORKERS: must be a whole number from 1 to ${MAX_WORKERS}`)
  else if (workers !== undefined && databaseUrl === 'memory:')
    faults.push('WORKERS: several processes need a shared database; "memory:" works with one process only')
  const noticeMs = Number(env.SHUTDOWN_NOTICE_MS || NOTICE_MS)
  if (!(Number.isInteger(noticeMs) && noticeMs >= 0 && noticeMs <= MAX_NOTICE_MS))
    faults.push(`SHUTDOWN_NOTICE_MS: must be whole milliseconds from 0 to ${MAX_NOTICE_MS}`)
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    port,
    host,
    configFile,
    configOrigin: configOption === undefined ? 'GATEWAY_CONFIG' : '--config',
    databaseUrl,
    redisUrl,
    adminToken,
    logLevel,
    observability,
    region: env.GATEWAY_REGION,
    workers,
    noticeMs,
  }
}

/** Returns what is wrong with a DATABASE_URL, without the URL, which may hold a password. */
export function databaseUrlFault(url: string): string | undefined {
  if (url === 'memory:' || /^(sqlite:|postgres(ql)?:\/\/)./.test(url)) return undefined
  return 'must be "sqlite:<path>", "postgres://…" or "memory:"'
}

/** Returns what is wrong with an ADMIN_TOKEN. */
export function adminTokenFault(token: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(token) ? undefined : 'must be printable ASCII without spaces'
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/**
 * Returns the config of a source and the settings.
 *
 * @throws {ConfigError} naming all faults.
 */
export function configOf(source: object, { region }: Pick<Settings, 'region'>): GatewayConfig {
  return loadConfig({ ...source, ...(region !== undefined && { region }) }, process.env)
}
