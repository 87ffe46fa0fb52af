import { readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError, type GatewayConfig, type LoadedConfig, loadConfig } from 'express-model-gateway/config'
import { z } from 'zod'
import { REDIS_URL_FORMS, redisUrlFault } from './redis-url.ts'
import { adminTokenFault, MIN_ADMIN_TOKEN, readSetting } from './secret-settings.ts'

/** The variables of a process. */
export type Variables = Readonly<Record<string, string | undefined>>

/** The database without DATABASE_URL. */
const DATABASE = 'sqlite:.data/gateway.db'
/** A separate database: the demo's key is public, and a key stays valid in the database that it was added to. */
const DEMO_DATABASE = 'sqlite:.data/demo.db'

/** Most connections of a process to Postgres without DATABASE_CONNECTIONS. */
export const DATABASE_CONNECTIONS = 24

/** The share of calls that are traced if no sampler is set: a trace takes several times as long as all metrics of a call. */
const TRACE_SHARE = 0.01

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** A value of `OTEL_TRACES_SAMPLER`, as OpenTelemetry defines it. */
export type SamplerName = (typeof SAMPLERS)[number]

/** The path at which the sign-in provider sends the browser back. */
const CALLBACK = '/console/sign-in/callback'

// The values, which variables and the options of `createGateway` share. A fault never quotes a value that may be secret.

function wholeNumber(least: number, most: number, unit = 'a whole number') {
  const fault = `must be ${unit} from ${least} to ${most}`
  return z.int(fault).min(least, fault).max(most, fault)
}

/** A text in which `faultOf` finds no fault. */
function faultless(faultOf: (text: string) => string | undefined, fault?: string) {
  return z.string(fault).superRefine((text, context) => {
    const found = faultOf(text)
    if (found !== undefined) context.addIssue(found)
  })
}

const DATABASE_FAULT = 'must be "sqlite:<path>", "postgres://…" or "memory:"'
const databaseUrl = z
  .string(DATABASE_FAULT)
  .regex(/^(memory:$|(sqlite:|postgres(ql)?:\/\/).)/, DATABASE_FAULT)
const databaseConnections = wholeNumber(12, 1000)
/** No caller waits longer than a minute for an answer. */
const ledgerMs = wholeNumber(1, 60_000, 'whole milliseconds')
const redisUrl = faultless(redisUrlFault, REDIS_URL_FORMS)
const adminToken = faultless(adminTokenFault, 'must be a string')

const ISSUER_FAULT = 'must be an https:// address, or http:// of this machine'
const REDIRECT_FAULT = `must be an https:// address that ends in ${CALLBACK}`
const NEEDED = 'is needed beside the issuer'
const name = z.string('must be a string that is not empty').min(1, 'must be a string that is not empty')
const issuer = z.string(ISSUER_FAULT).refine(isSafeAddress, ISSUER_FAULT)
const clientId = z.string(NEEDED).min(1, NEEDED)
const clientSecret = faultless((text) => {
  if (text === '') return NEEDED
  const read = readSetting(text)
  return 'fault' in read ? read.fault : undefined
}, NEEDED)
const roleClaim = name.default('roles')
const scope = name.default('openid profile email')
const redirectUri = z
  .string(REDIRECT_FAULT)
  .refine((text) => isSafeAddress(text) && text.endsWith(CALLBACK), REDIRECT_FAULT)
  .optional()

/** The provider of OpenID Connect at which operators sign in. */
const signInProvider = z.object(
  { issuer, clientId, clientSecret, roleClaim, scope, redirectUri },
  'must be an object with "issuer", "clientId" and "clientSecret"',
)

const CONSOLE_FAULT = 'must be an http:// or https:// address, such as https://gateway.example.com/console'
const consoleUrl = z.string(CONSOLE_FAULT).regex(/^https?:\/\/[^\s<>|#?]+$/, CONSOLE_FAULT)

/** The options that `createGateway` shares with the environment. */
export const SHARED_OPTIONS = {
  databaseUrl: databaseUrl.default(DATABASE),
  databaseConnections: databaseConnections.default(DATABASE_CONNECTIONS),
  databasePartitions: z.boolean('must be true or false').default(false),
  ledgerStallMs: ledgerMs.optional(),
  ledgerConfirmMs: ledgerMs.optional(),
  redisUrl: z.preprocess(emptyAsNone, redisUrl.optional()),
  adminToken: z.preprocess(emptyAsNone, adminToken.optional()),
  signInProvider: signInProvider.optional(),
  consoleUrl: consoleUrl.optional(),
}

export type GivenProvider = z.input<typeof signInProvider>
export type ProviderSettings = z.output<typeof signInProvider>

// The variables.

/** To `Number`, blanks are 0. */
const number = z.string().transform((text) => (text.trim() === '' ? Number.NaN : Number(text)))

const port = z
  .string()
  .refine((text) => text.trim() !== '' && wholeNumber(0, 65_535).safeParse(Number(text)).success, {
    error: ({ input }) => `"${input}" is not a port number`,
  })
  .transform(Number)

/** The value of a variable, or the content of the file that it names as `file:PATH`. */
const secret = z.string().transform((value, context) => {
  const read = readSetting(value)
  if ('text' in read) return read.text
  context.addIssue(read.fault)
  return z.NEVER
})

const SHARE_FAULT = `must be a share from 0 to 1, such as ${TRACE_SHARE}`

const TELEMETRY = {
  /** The exporters read the address themselves, and the other `OTEL_EXPORTER_…` variables. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .regex(/^https?:\/\/./, 'must be "http://…" or "https://…"')
    .optional(),
  OTEL_TRACES_SAMPLER_ARG: number
    .pipe(z.number(SHARE_FAULT).min(0, SHARE_FAULT).max(1, SHARE_FAULT))
    .optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`).optional(),
}

export const VARIABLES = z.object({
  PORT: port.default(8787),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
  /** Without it the gateway runs the demo config. */
  GATEWAY_CONFIG: z.string().optional(),
  DATABASE_URL: secret.pipe(databaseUrl).optional(),
  DATABASE_CONNECTIONS: number.pipe(databaseConnections).default(DATABASE_CONNECTIONS),
  /** Whether a new Postgres divides large tables by time. */
  DATABASE_PARTITIONS: z.enum(['0', '1'], 'must be 1 or 0').default('0'),
  /** By default calls wait the longer for the ledger, the farther it is away. */
  LEDGER_STALL_MS: number.pipe(ledgerMs).optional(),
  LEDGER_CONFIRM_MS: number.pipe(ledgerMs).optional(),
  /** Without it this process, or its primary process, counts limits. */
  REDIS_URL: secret
    .transform((url) => url || undefined)
    .pipe(redisUrl.optional())
    .optional(),
  /** The token itself, or `file:PATH`, which is followed. Without it there is no admin API. */
  ADMIN_TOKEN: adminToken.optional(),
  ...TELEMETRY,
  OIDC_ISSUER: issuer.optional(),
  OIDC_CLIENT_ID: clientId.optional(),
  OIDC_CLIENT_SECRET: clientSecret.optional(),
  OIDC_ROLE_CLAIM: roleClaim,
  OIDC_SCOPE: scope,
  OIDC_REDIRECT_URI: redirectUri,
  HOST: z.string().default('127.0.0.1'),
  /** The port of operators. Without it they share the port of callers. */
  ADMIN_PORT: port.optional(),
  ADMIN_HOST: z.string().optional(),
  /** More than any machine has processors; a typo must not bring the machine down. Without it, this process serves alone. */
  WORKERS: number.pipe(wholeNumber(1, 256)).optional(),
  /** Between "not ready" and the end of listening. Balancers need less to notice that checks of /readyz fail. */
  SHUTDOWN_NOTICE_MS: number.pipe(wholeNumber(0, 120_000, 'whole milliseconds')).default(5000),
  /** The address of the console, for messages to people. By default that of its port. */
  CONSOLE_URL: consoleUrl.optional(),
  WEBHOOK_ALLOW_PRIVATE: z.enum(['0', '1'], 'must be 1 or 0').default('0'),
  /** Overrides the config's `region`. */
  GATEWAY_REGION: z.string().optional(),
})

type Given = z.output<typeof VARIABLES>

const ENVIRONMENT = VARIABLES.refine(
  (given) => !hasProvider(given) || given.OIDC_ISSUER !== undefined,
  fault('OIDC_ISSUER', ISSUER_FAULT),
)
  .refine(
    (given) => !hasProvider(given) || given.OIDC_CLIENT_ID !== undefined,
    fault('OIDC_CLIENT_ID', NEEDED),
  )
  .refine(
    (given) => !hasProvider(given) || given.OIDC_CLIENT_SECRET !== undefined,
    fault('OIDC_CLIENT_SECRET', NEEDED),
  )
  .refine(
    (given) => !hasProvider(given) || given.ADMIN_TOKEN !== undefined,
    fault('OIDC_ISSUER', 'set ADMIN_TOKEN too; without it there is no admin API'),
  )
  .refine(
    ({ ADMIN_TOKEN, ADMIN_PORT, HOST }) => ADMIN_PORT !== undefined || isStrong(ADMIN_TOKEN, HOST),
    fault('ADMIN_TOKEN', tooShortFor('HOST')),
  )
  .refine(
    ({ ADMIN_TOKEN, ADMIN_PORT, ADMIN_HOST, HOST }) =>
      ADMIN_PORT === undefined || isStrong(ADMIN_TOKEN, ADMIN_HOST ?? HOST),
    fault('ADMIN_TOKEN', tooShortFor('ADMIN_HOST')),
  )
  .refine(
    ({ PORT, ADMIN_PORT }) => ADMIN_PORT === undefined || ADMIN_PORT === 0 || ADMIN_PORT !== PORT,
    fault('ADMIN_PORT', 'must be another port than PORT'),
  )
  .refine(
    ({ ADMIN_PORT, ADMIN_HOST }) => ADMIN_PORT !== undefined || ADMIN_HOST === undefined,
    fault('ADMIN_HOST', 'is used with ADMIN_PORT only'),
  )
  .refine(
    ({ WORKERS = 0, DATABASE_URL }) => !(WORKERS >= 1) || DATABASE_URL !== 'memory:',
    fault('WORKERS', 'several processes need a shared database; "memory:" works with one process only'),
  )
  .transform((given) => ({
    port: given.PORT,
    host: given.HOST,
    adminListener:
      given.ADMIN_PORT === undefined
        ? undefined
        : { port: given.ADMIN_PORT, host: given.ADMIN_HOST ?? given.HOST },
    configFile: given.GATEWAY_CONFIG,
    databaseUrl: given.DATABASE_URL ?? (given.GATEWAY_CONFIG === undefined ? DEMO_DATABASE : DATABASE),
    databaseConnections: given.DATABASE_CONNECTIONS,
    databasePartitions: given.DATABASE_PARTITIONS === '1',
    ledgerStallMs: given.LEDGER_STALL_MS,
    ledgerConfirmMs: given.LEDGER_CONFIRM_MS,
    redisUrl: given.REDIS_URL,
    adminToken: given.ADMIN_TOKEN,
    signInProvider: providerOf(given),
    consoleUrl: given.CONSOLE_URL ?? consoleUrlOf(given),
    webhookAllowPrivate: given.WEBHOOK_ALLOW_PRIVATE === '1',
    logLevel: given.LOG_LEVEL,
    observability: observabilityOf(given),
    region: given.GATEWAY_REGION,
    workers: given.WORKERS,
    noticeMs: given.SHUTDOWN_NOTICE_MS,
  }))

/** The option of the command that named the config file, or the variable. */
export type ConfigOrigin = '--config' | 'GATEWAY_CONFIG'

/** The settings of a process. A setting without a value is undefined. */
export interface Settings extends z.output<typeof ENVIRONMENT> {
  readonly configOrigin: ConfigOrigin
  /** The path of a module with middlewares of your own; undefined = none. */
  readonly use?: string | undefined
}

/**
 * Reads the settings from the environment.
 *
 * @param configOption the value of `--config`, which replaces GATEWAY_CONFIG.
 * @throws {ConfigError} with one fault per invalid variable.
 */
export function readSettings(env: Variables, configOption?: string): Settings {
  const { data, error } = ENVIRONMENT.safeParse(
    withoutEmpty({ ...env, ...(configOption !== undefined && { GATEWAY_CONFIG: configOption }) }),
  )
  const faults = faultsOf(error)
  if (!data || faults.length > 0) throw new ConfigError(faults)
  return { ...data, configOrigin: configOption === undefined ? 'GATEWAY_CONFIG' : '--config' }
}

/** Where telemetry goes, and which calls are traced. */
export type ObservabilitySettings = ReturnType<typeof observabilityOf>

/**
 * Reads the variables of telemetry alone.
 *
 * @throws {ConfigError} with one fault per invalid variable.
 */
export function readObservability(env: Variables): ObservabilitySettings {
  const { data, error } = z.object(TELEMETRY).safeParse(withoutEmpty(env))
  if (!data) throw new ConfigError(faultsOf(error))
  return observabilityOf(data)
}

function faultsOf(error: z.ZodError | undefined): string[] {
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []
}

/** An empty variable is as good as none, as compose files pass it on. An empty address of all data is a mistake. */
function withoutEmpty(env: Variables): Variables {
  const isMistake = (name: string): boolean => name === 'DATABASE_URL' || name === 'GATEWAY_CONFIG'
  return Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== '' || isMistake(name)))
}

/** A fault that the relation of several variables shows. It is reported beside the faults of single ones. */
function fault(variable: keyof Given, error: string) {
  return { path: [variable], error, when: () => true }
}

function tooShortFor(host: string): string {
  return `must be at least ${MIN_ADMIN_TOKEN} characters long where ${host} is not a loopback address`
}

function isStrong(token: string | undefined, host: string): boolean {
  return !token || token.startsWith('file:') || token.length >= MIN_ADMIN_TOKEN || isLoopback(host)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** Returns the address of the console on its own port; undefined if that is chosen later. */
function consoleUrlOf({ HOST, PORT, ADMIN_HOST = HOST, ADMIN_PORT = PORT }: Given): string | undefined {
  const isAnyAddress = ADMIN_HOST === '0.0.0.0' || ADMIN_HOST === '::'
  const host = ADMIN_HOST.includes(':') ? `[${ADMIN_HOST}]` : ADMIN_HOST
  return ADMIN_PORT === 0 || isAnyAddress ? undefined : `http://${host}:${ADMIN_PORT}/console`
}

function hasProvider({ OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET }: Given): boolean {
  return [OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET].some((value) => value !== undefined)
}

function providerOf(given: Given): ProviderSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = given
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return undefined
  return {
    issuer,
    clientId,
    clientSecret,
    roleClaim: given.OIDC_ROLE_CLAIM,
    scope: given.OIDC_SCOPE,
    redirectUri: given.OIDC_REDIRECT_URI,
  }
}

function observabilityOf(given: z.output<z.ZodObject<typeof TELEMETRY>>) {
  const { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share } = given
  return {
    /** Whether to send metrics and traces to a collector over OTLP. */
    toCollector: given.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined,
    traces: {
      /** Undefined: calls that the caller traces, and a share of all others, at most 100 per second. */
      sampler,
      /** From 0 to 1. With a sampler, the default is that of OpenTelemetry. */
      share: share ?? (sampler === undefined ? TRACE_SHARE : 1),
    },
  }
}

/** Codes and secrets go over this address. */
function isSafeAddress(address: string): boolean {
  const url = URL.parse(address)
  if (url?.protocol === 'https:') return true
  return url?.protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
}

function emptyAsNone(value: unknown): unknown {
  return value === '' ? undefined : value
}

/**
 * Returns the config of a source and the settings.
 *
 * @throws {ConfigError} naming all faults.
 */
export function configOf(
  source: object,
  { region }: Pick<Settings, 'region'>,
  env: Variables = process.env,
): LoadedConfig {
  // loadConfig checks the content of the file.
  return loadConfig({ ...(source as GatewayConfig), ...(region !== undefined && { region }) }, env)
}

/** The `.env`, and the environment without it. */
let loaded: { readonly file: string; readonly given: Variables } | undefined

/** Adds the `.env` beside a config, or of the current folder, to the environment. A variable that is set stays as it is. */
export function loadEnvironment(config: string | undefined): void {
  loaded = { file: join(config === undefined ? '.' : dirname(config), '.env'), given: { ...process.env } }
  Object.assign(process.env, currentVariables())
}

/** Returns the files that {@link currentVariables} reads. */
export function environmentFiles(): readonly string[] {
  return loaded ? [loaded.file] : []
}

/**
 * Returns the environment with the `.env` as it is now. `process.env` stays as it was at the start: a worker that is
 * started later must have the settings of the others.
 */
export function currentVariables(): Variables {
  return loaded ? { ...variablesIn(loaded.file), ...loaded.given } : process.env
}

function variablesIn(file: string): Variables {
  try {
    return parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new ConfigError([`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
}
