import { isIPv4 } from 'node:net'
import { ConfigError, type GatewayConfig, loadConfig } from 'express-model-gateway/config'
import type { ConfigOrigin } from './config-file.ts'
import { numberIn } from './number-setting.ts'
import { type ObservabilitySettings, readObservability } from './observability-settings.ts'
import { redisUrlFault } from './redis-url.ts'
import { type RegionSettings, readRegions } from './region-settings.ts'
import { adminTokensIn, secretIn, settingFault } from './secret-settings.ts'
import { type ProviderSettings, readProvider } from './single-sign-on/provider-settings.ts'

export interface Settings {
  readonly port: number
  readonly host: string
  /** Where operators have a port of their own; undefined = there is none. */
  readonly adminListener: { readonly port: number; readonly host: string } | undefined
  /** Path of the config file; undefined = the demo config. */
  readonly configFile: string | undefined
  readonly configOrigin: ConfigOrigin
  readonly databaseUrl: string
  /** Most connections of a process to Postgres. */
  readonly databaseConnections: number
  /** How long calls wait for the ledger, in milliseconds; undefined = the longer the farther it is away. */
  readonly ledgerStallMs: number | undefined
  readonly ledgerConfirmMs: number | undefined
  /** The Redis that counts limits for several processes; undefined = limits are counted in this process. */
  readonly redisUrl: string | undefined
  /** The token of the admin API, or `file:PATH`; undefined = there is no admin API. */
  readonly adminToken: string | undefined
  /** The provider that operators sign in at; undefined = there is none. */
  readonly signInProvider: ProviderSettings | undefined
  /** Whether webhooks may have private addresses, and `http:` ones. */
  readonly webhookAllowPrivate: boolean
  readonly logLevel: string
  readonly observability: ObservabilitySettings
  /** The other regions that this one shares accounts with; undefined = there are none. */
  readonly regions: RegionSettings | undefined
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

/** Most connections of a process to Postgres without DATABASE_CONNECTIONS. */
export const DATABASE_CONNECTIONS = 24
/** With fewer, what must not wait for each other would. */
const MIN_CONNECTIONS = 12
const MAX_CONNECTIONS = 1000

/** Nobody waits longer for an answer. */
const MAX_LEDGER_MS = 60_000

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
  const port = portIn(env, 'PORT', 8787, faults)
  const logLevel = env.LOG_LEVEL || 'info'
  if (!LOG_LEVELS.includes(logLevel)) faults.push(`LOG_LEVEL: must be one of ${LOG_LEVELS.join(', ')}`)
  const configFile = configOption ?? env.GATEWAY_CONFIG
  const databaseUrl =
    secretIn(env, 'DATABASE_URL', faults) ?? (configFile === undefined ? DEMO_DATABASE : DATABASE)
  const databaseFault = databaseUrlFault(databaseUrl)
  if (databaseFault) faults.push(`DATABASE_URL: ${databaseFault}`)
  const databaseConnections = Number(env.DATABASE_CONNECTIONS || DATABASE_CONNECTIONS)
  const connectionsFault = databaseConnectionsFault(databaseConnections)
  if (connectionsFault) faults.push(`DATABASE_CONNECTIONS: ${connectionsFault}`)
  const ledgerStallMs = ledgerTimeIn(env, 'LEDGER_STALL_MS', faults)
  const ledgerConfirmMs = ledgerTimeIn(env, 'LEDGER_CONFIRM_MS', faults)
  const redisUrl = secretIn(env, 'REDIS_URL', faults) || undefined
  const redisFault = redisUrl && redisUrlFault(redisUrl)
  if (redisFault) faults.push(`REDIS_URL: ${redisFault}`)
  const adminToken = env.ADMIN_TOKEN || undefined
  const observability = readObservability(env, faults)
  const tokenFault = adminToken && adminTokenFault(adminToken)
  if (tokenFault) faults.push(`ADMIN_TOKEN: ${tokenFault}`)
  const signInProvider = readProvider(env, faults)
  const regions = readRegions(env, databaseUrl, faults)
  // Node takes an empty host for all addresses.
  const host = env.HOST || '127.0.0.1'
  const adminListener = env.ADMIN_PORT
    ? { port: portIn(env, 'ADMIN_PORT', 0, faults), host: env.ADMIN_HOST || host }
    : undefined
  if (
    adminToken !== undefined &&
    !adminToken.startsWith('file:') &&
    adminToken.length < MIN_ADMIN_TOKEN &&
    !isLoopback(adminListener?.host ?? host)
  ) {
    faults.push(
      `ADMIN_TOKEN: must be at least ${MIN_ADMIN_TOKEN} characters long where ${adminListener ? 'ADMIN_HOST' : 'HOST'} is not a loopback address`,
    )
  }
  if (adminListener && adminListener.port !== 0 && adminListener.port === port)
    faults.push('ADMIN_PORT: must be another port than PORT')
  if (!adminListener && env.ADMIN_HOST) faults.push('ADMIN_HOST: is used with ADMIN_PORT only')
  const workers = env.WORKERS ? Number(env.WORKERS) : undefined
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 1 && workers <= MAX_WORKERS))
    faults.push(`WORKERS: must be a whole number from 1 to ${MAX_WORKERS}`)
  else if (workers !== undefined && databaseUrl === 'memory:')
    faults.push('WORKERS: several processes need a shared database; "memory:" works with one process only')
  const noticeMs = numberIn(env.SHUTDOWN_NOTICE_MS || `${NOTICE_MS}`)
  if (!(Number.isInteger(noticeMs) && noticeMs >= 0 && noticeMs <= MAX_NOTICE_MS))
    faults.push(`SHUTDOWN_NOTICE_MS: must be whole milliseconds from 0 to ${MAX_NOTICE_MS}`)
  const webhookAllowPrivate = env.WEBHOOK_ALLOW_PRIVATE || '0'
  if (!/^[01]$/.test(webhookAllowPrivate)) faults.push('WEBHOOK_ALLOW_PRIVATE: must be 1 or 0')
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    port,
    host,
    adminListener,
    configFile,
    configOrigin: configOption === undefined ? 'GATEWAY_CONFIG' : '--config',
    databaseUrl,
    databaseConnections,
    ledgerStallMs,
    ledgerConfirmMs,
    redisUrl,
    adminToken,
    signInProvider,
    webhookAllowPrivate: webhookAllowPrivate === '1',
    regions,
    logLevel,
    observability,
    region: env.GATEWAY_REGION || undefined,
    workers,
    noticeMs,
  }
}

function portIn(
  env: NodeJS.ProcessEnv,
  name: 'PORT' | 'ADMIN_PORT',
  preset: number,
  faults: string[],
): number {
  const port = numberIn(env[name] || `${preset}`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    faults.push(`${name}: "${env[name]}" is not a port number`)
  return port
}

/** Returns what is wrong with a DATABASE_URL, without the URL, which may hold a password. */
export function databaseUrlFault(url: unknown): string | undefined {
  if (typeof url === 'string' && (url === 'memory:' || /^(sqlite:|postgres(ql)?:\/\/)./.test(url)))
    return undefined
  return 'must be "sqlite:<path>", "postgres://…" or "memory:"'
}

/** Returns what is wrong with a number of connections. */
export function databaseConnectionsFault(count: unknown): string | undefined {
  const isValid =
    Number.isInteger(count) && (count as number) >= MIN_CONNECTIONS && (count as number) <= MAX_CONNECTIONS
  return isValid ? undefined : `must be a whole number from ${MIN_CONNECTIONS} to ${MAX_CONNECTIONS}`
}

function ledgerTimeIn(
  env: NodeJS.ProcessEnv,
  name: 'LEDGER_STALL_MS' | 'LEDGER_CONFIRM_MS',
  faults: string[],
): number | undefined {
  if (!env[name]) return undefined
  const ms = Number(env[name])
  const fault = ledgerTimeFault(ms)
  if (fault) faults.push(`${name}: ${fault}`)
  return ms
}

/** Returns what is wrong with a time that calls wait for the ledger. */
export function ledgerTimeFault(ms: unknown): string | undefined {
  const isValid = Number.isInteger(ms) && (ms as number) >= 1 && (ms as number) <= MAX_LEDGER_MS
  return isValid ? undefined : `must be whole milliseconds from 1 to ${MAX_LEDGER_MS}`
}

/** Returns what is wrong with an ADMIN_TOKEN, which may be `file:PATH`. */
export function adminTokenFault(setting: unknown): string | undefined {
  if (typeof setting !== 'string') return 'must be a string'
  if (setting.startsWith('file:')) return settingFault(setting, adminTokensFault)
  return isToken(setting) ? undefined : 'must be printable ASCII without spaces'
}

/** Returns what is wrong with the admin tokens of a file. */
export function adminTokensFault(text: string): string | undefined {
  const isValid = adminTokensIn(text).every((token) => isToken(token) && token.length >= MIN_ADMIN_TOKEN)
  return isValid
    ? undefined
    : `the file must hold tokens of at least ${MIN_ADMIN_TOKEN} printable ASCII characters`
}

function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/**
 * Returns the config of a source and the settings.
 *
 * @throws {ConfigError} naming all faults.
 */
export function configOf(
  source: object,
  { region }: Pick<Settings, 'region'>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): GatewayConfig {
  return loadConfig({ ...source, ...(region !== undefined && { region }) }, env)
}
