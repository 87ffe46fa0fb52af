import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { ConfigError, type GatewayConfig, loadConfig } from 'express-model-gateway'
import type { ObservabilitySettings } from './observability.ts'
import { SAMPLERS, type SamplerName, type TraceSettings } from './traces.ts'

/** What the environment says. */
export interface Settings {
  readonly port: number
  readonly host: string
  /** Path of the config file; undefined = the demo config. */
  readonly configFile: string | undefined
  readonly databaseUrl: string
  /** Where limits are counted when several processes share them; undefined = in this process. */
  readonly redisUrl: string | undefined
  /** What opens the admin API; undefined = there is none. */
  readonly adminToken: string | undefined
  readonly logLevel: string
  readonly observability: ObservabilitySettings
  /** Overrides the config's `region`. */
  readonly region: string | undefined
  /** How many processes serve; undefined = this one. */
  readonly workers: number | undefined
}

const DATABASE = 'sqlite:.data/gateway.db'
/** Of its own: the demo's key is known to everybody, and a key once seeded stays valid in its database. */
const DEMO_DATABASE = 'sqlite:.data/demo.db'

/** Beyond the processors of any machine; a slip of the key does not bring it down. */
const MOST_WORKERS = 256

/** A trace takes several times what all metrics of a call do, most of it to be sent. */
const TRACE_SHARE = 0.01

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Whoever guesses it can move money; nobody else's machine reaches a loopback address. */
const SHORTEST_ADMIN_TOKEN = 16

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
  const configFile = env.GATEWAY_CONFIG
  const databaseUrl = env.DATABASE_URL ?? (configFile === undefined ? DEMO_DATABASE : DATABASE)
  if (databaseUrl !== 'memory:' && !/^(sqlite:|postgres(ql)?:\/\/)./.test(databaseUrl)) {
    // Not the value: a URL may hold a password.
    faults.push('DATABASE_URL: must be "sqlite:<path>", "postgres://…" or "memory:"')
  }
  const redisUrl = env.REDIS_URL || undefined
  if (redisUrl !== undefined && !/^rediss?:\/\/./.test(redisUrl)) {
    faults.push('REDIS_URL: must be "redis://…" or "rediss://…"')
  }
  const adminToken = env.ADMIN_TOKEN || undefined
  const observability = readObservability(env, faults)
  if (adminToken !== undefined && !/^[\x21-\x7e]+$/.test(adminToken)) {
    faults.push('ADMIN_TOKEN: must be printable ASCII without spaces')
  }
  const host = env.HOST ?? '127.0.0.1'
  if (adminToken !== undefined && adminToken.length < SHORTEST_ADMIN_TOKEN && !isLoopback(host)) {
    faults.push(
      `ADMIN_TOKEN: must be at least ${SHORTEST_ADMIN_TOKEN} characters long where HOST is not a loopback address`,
    )
  }
  const workers = env.WORKERS ? Number(env.WORKERS) : undefined
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 1 && workers <= MOST_WORKERS))
    faults.push(`WORKERS: must be a whole number from 1 to ${MOST_WORKERS}`)
  else if (workers !== undefined && databaseUrl === 'memory:')
    faults.push('WORKERS: the processes need a database that they share; "memory:" is of one process')
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
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function readObservability(env: NodeJS.ProcessEnv, faults: string[]): ObservabilitySettings {
  const collector = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined
  // Not the value: a URL may hold a password.
  if (collector !== undefined && !/^https?:\/\/./.test(collector))
    faults.push('OTEL_EXPORTER_OTLP_ENDPOINT: must be "http://…" or "https://…"')
  return { toCollector: collector !== undefined, traces: readTraces(env, faults) }
}

function readTraces(env: NodeJS.ProcessEnv, faults: string[]): TraceSettings {
  const sampler = env.OTEL_TRACES_SAMPLER || undefined
  // Of a sampler that is asked for, OpenTelemetry's default.
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
 * The config that a source and the settings make.
 *
 * @throws {ConfigError} naming every fault.
 */
export function configOf(source: object, { region }: Settings): GatewayConfig {
  return loadConfig({ ...source, ...(region !== undefined && { region }) }, process.env)
}

/**
 * Reads a config file.
 *
 * @throws {ConfigError} when it cannot be read or is no JSON object.
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
    throw new ConfigError([`GATEWAY_CONFIG: ${path} is not valid JSON${placeOf(error as Error, text)}`])
  }
}

function asObject(json: unknown, path: string): object {
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  throw new ConfigError([`GATEWAY_CONFIG: ${path} must hold a JSON object`])
}

/** Where JSON.parse gave up. Its message is not told: it quotes the text around that place, which may be a secret. */
function placeOf({ message }: Error, text: string): string {
  const quoted = /, (\.\.\.)?"(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)
  // What V8 quotes begins ten characters before the place, if it does not begin with the text.
  const found = quoted?.[1] ? text.indexOf(quoted[2] as string) + 10 : undefined
  const told = /at position (\d+)/.exec(message)?.[1]
  const at = told === undefined ? found : Number(told)
  return at === undefined ? '' : `: look at line ${text.slice(0, at).split('\n').length}`
}
