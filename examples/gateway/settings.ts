import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { ConfigError, type GatewayConfig, loadConfig } from 'express-model-gateway'
import type { ObservabilitySettings } from './observability.ts'
import { redisUrlFault } from './redis-client.ts'
import { SAMPLERS, type SamplerName, type TraceSettings } from './traces.ts'

/** The settings from the environment. */
export interface Settings {
  readonly port: number
  readonly host: string
  /** Path of the config file; undefined = the demo config. */
  readonly configFile: string | undefined
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

const DATABASE = 'sqlite:.data/gateway.db'
/** A separate database: the demo's key is public, and a key stays valid in the database that it was added to. */
const DEMO_DATABASE = 'sqlite:.data/demo.db'

/** More than any machine has processors; a typo must not bring the machine down. */
const MAX_WORKERS = 256

/** Longer than a balancer needs to notice that checks of /readyz fail. */
const NOTICE_MS = 5000
const MAX_NOTICE_MS = 120_000

/** The default share of traced calls: a trace takes several times as long as all metrics of a call. */
const TRACE_SHARE = 0.01

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** The minimum length where other machines can reach the gateway: the token gives access to all money. */
const MIN_ADMIN_TOKEN = 16

/**
 * Reads the settings from the environment.
 *
 * @throws {ConfigError} with one fault per invalid variable.
 */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const faults: string[] = []
  const port = Number(env.PORT ?? 8787)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    faults.push(`PORT: "${env.PORT}" is not a port number`)
  const logLevel = env.LOG_LEVEL ?? 'info'
  if (!LOG_LEVELS.includes(logLevel)) faults.push(`LOG_LEVEL: must be one of ${LOG_LEVELS.join(', ')}`)
  const configFile = env.GATEWAY_CONFIG
  const databaseUrl = env.DATABASE_URL ?? (configFile === undefined ? DEMO_DATABASE : DATABASE)
  if (databaseUrl !== 'memory:' && !/^(sqlite:|postgres(ql)?:\/\/)./.test(databaseUrl)) {
    // Without the value, because a URL may hold a password.
    faults.push('DATABASE_URL: must be "sqlite:<path>", "postgres://…" or "memory:"')
  }
  const redisUrl = env.REDIS_URL || undefined
  const redisFault = redisUrl && redisUrlFault(redisUrl)
  if (redisFault) faults.push(`REDIS_URL: ${redisFault}`)
  const adminToken = env.ADMIN_TOKEN || undefined
  const observability = readObservability(env, faults)
  if (adminToken !== undefined && !/^[\x21-\x7e]+$/.test(adminToken)) {
    faults.push('ADMIN_TOKEN: must be printable ASCII without spaces')
  }
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

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function readObservability(env: NodeJS.ProcessEnv, faults: string[]): ObservabilitySettings {
  const collector = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined
  // Without the value, because a URL may hold a password.
  if (collector !== undefined && !/^https?:\/\/./.test(collector))
    faults.push('OTEL_EXPORTER_OTLP_ENDPOINT: must be "http://…" or "https://…"')
  return { toCollector: collector !== undefined, traces: readTraces(env, faults) }
}

function readTraces(env: NodeJS.ProcessEnv, faults: string[]): TraceSettings {
  const sampler = env.OTEL_TRACES_SAMPLER || undefined
  // With a configured sampler, the default is that of OpenTelemetry.
  const share = Number(env.OTEL_TRACES_SAMPLER_ARG || (sampler === undefined ? TRACE_SHARE : 1))
  if (!(share >= 0 && share <= 1))
    faults.push(`OTEL_TRACES_SAMPLER_ARG: must be a share from 0 to 1, such as ${TRACE_SHARE}`)
  if (sampler === undefined || isSampler(sampler)) return { sampler, share }
  faults.push(`OTEL_TRACES_SAMPLER: must be one of ${Object.keys(SAMPLERS).join(', ')}`)
  return { sampler: undefined, share }
}

function isSampler(name: string): name is SamplerName {
  return Object.hasOwn(SAMPLERS, name)
}

/**
 * Returns the config of a source and the settings.
 *
 * @throws {ConfigError} naming all faults.
 */
export function configOf(source: object, { region }: Settings): GatewayConfig {
  return loadConfig({ ...source, ...(region !== undefined && { region }) }, process.env)
}

/**
 * Reads a config file.
 *
 * @throws {ConfigError} if it cannot be read or is not a JSON object.
 */
export async function readConfigFile(path: string): Promise<object> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new ConfigError([
      `GATEWAY_CONFIG: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    ])
  }
  try {
    return asObject(JSON.parse(text), path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError([`GATEWAY_CONFIG: ${path} is not valid JSON${lineOf(error as Error, text)}`])
  }
}

function asObject(json: unknown, path: string): object {
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  throw new ConfigError([`GATEWAY_CONFIG: ${path} must hold a JSON object`])
}

/** Returns the line of a JSON error. The error's message is not shown, because it quotes text that may be a secret. */
function lineOf({ message }: Error, text: string): string {
  const quoted = /, (\.\.\.)?"(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)
  // V8's quote begins ten characters before the error, unless it begins with the text.
  const quotedAt = quoted?.[1] ? text.indexOf(quoted[2] as string) + 10 : undefined
  const position = /at position (\d+)/.exec(message)?.[1]
  const at = position === undefined ? quotedAt : Number(position)
  return at === undefined ? '' : `: look at line ${text.slice(0, at).split('\n').length}`
}
