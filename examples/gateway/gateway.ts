import type { IncomingMessage, Server } from 'node:http'
import type { ListenOptions } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import { ConfigError, type Logger, loadConfig } from 'express-model-gateway'
import { behindMounts } from './behind-mounts.ts'
import { ConfigReload } from './config-reload.ts'
import { HTTP_BOUNDS, httpServer } from './http-server.ts'
import type { Connections } from './in-flight.ts'
import { jsonLog } from './json-log.ts'
import { openLimitStores } from './limit-stores.ts'
import { readObservability } from './observability-settings.ts'
import { openGateway } from './open-gateway.ts'
import { redisUrlFault } from './redis-url.ts'
import {
  adminTokenFault,
  DATABASE,
  DATABASE_CONNECTIONS,
  databaseConnectionsFault,
  databaseUrlFault,
  ledgerTimeFault,
} from './settings.ts'
import { drainServer } from './shutdown.ts'
import { completeProvider, type GivenProvider, providerFaults } from './single-sign-on/provider-settings.ts'
import { startable } from './startable-config.ts'

/** Options of {@link createGateway}. */
export interface GatewayOptions {
  /**
   * Where accounts, keys, charges and the call log are kept: `sqlite:<path>`, `postgres://…` (needs the package `pg`) or
   * `memory:`, which forgets all at the end. Defaults to `sqlite:.data/gateway.db`.
   */
  readonly databaseUrl?: string | undefined
  /** Most connections to Postgres, from 12 to 1000. One that is far away needs more. Defaults to 24. */
  readonly databaseConnections?: number | undefined
  /**
   * No call is admitted while a charge has waited longer for the database, in milliseconds. Defaults to 500, or eight times what a
   * round trip takes.
   */
  readonly ledgerStallMs?: number | undefined
  /**
   * How long the end of an answer waits for its charge, in milliseconds. Defaults to 1500, or fifteen times what a round trip
   * takes.
   */
  readonly ledgerConfirmMs?: number | undefined
  /**
   * The Redis that counts limits for several processes: `redis://…`, `rediss://…`, `redis+cluster://…` or
   * `redis+sentinel://…` (needs the package `ioredis`). Defaults to none: limits are counted in this process.
   */
  readonly redisUrl?: string | undefined
  /** The token of the admin API, or `file:PATH`. Defaults to none: there is no admin API. */
  readonly adminToken?: string | undefined
  /**
   * The provider of OpenID Connect that operators sign in to the console at (needs the package `openid-client`). Defaults to
   * none.
   */
  readonly signInProvider?: GivenProvider | undefined
  /** Whether webhooks may have private addresses, and `http:` ones. Defaults to false. */
  readonly webhookAllowPrivate?: boolean | undefined
  /** Takes the log. Defaults to JSON lines on the standard output, from level `info` on. */
  readonly logger?: Logger | undefined
  /**
   * Whether to register OpenTelemetry's SDK for the whole process and to answer `GET /metrics`. Defaults to false:
   * measurements go to the providers that your app has registered.
   */
  readonly metrics?: boolean | undefined
  /** Where `env:NAME` in the config is looked up. Defaults to `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

/**
 * The gateway as an Express app. You can `listen` on it or mount it in another app. Its own `listen` also serves
 * WebSockets and answers broken requests with an envelope.
 */
export interface Gateway extends Express {
  /**
   * Serves WebSockets where another server has the port: `server.on('upgrade', gateway.upgrade)`. They have the path of the mount,
   * too, whether an app or a router has mounted the gateway.
   */
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
  /**
   * Applies the models, lines, prices and rules of another config; calls that run keep the one they began with.
   *
   * @throws {ConfigError} naming all faults; nothing has changed then.
   */
  reload(config: object): Promise<void>
  /**
   * Ends the gateway: stops the servers of its own `listen`, lets running calls end (up to 30 s), writes their charges and
   * closes the stores. Where another server has the port, close that server first. A second call waits for the first.
   */
  close(): Promise<void>
}

/**
 * Creates the assembled gateway.
 *
 * @param config the content of a config file.
 * @throws {ConfigError} naming all faults of the config and the options, or if the database cannot be opened.
 * @example
 * const gateway = await createGateway(JSON.parse(await readFile('gateway.json', 'utf8')), { databaseUrl: 'memory:' })
 * gateway.listen(8787)
 * process.once('SIGTERM', () => gateway.close())
 */
export async function createGateway(config: object, options: GatewayOptions = {}): Promise<Gateway> {
  const { env, logger, redisUrl, metrics, ...more } = validate(options)
  const valid = loadConfig(config, env)
  // The caller may change its object, and reload it later.
  let source = structuredClone(config)
  const limits = await openLimitStores(redisUrl, logger)
  const observability = metrics ? readObservability(env, []) : undefined
  const opened = await openGateway({ config: valid, limits, observability, logger, ...more })
  const { app, serve, refused, upgrades, readiness } = opened
  const servers: { readonly server: Server; readonly connections: Connections }[] = []
  let closed: Promise<void> | undefined
  // A secret in a file is read again when the file changes.
  const secrets = new ConfigReload({
    files: [],
    started: valid,
    logger,
    read: async () => source,
    load: async (next) => startable(loadConfig(next, env)),
    apply: (next) => opened.reload(next),
  })
  secrets.watch()

  async function end(): Promise<void> {
    secrets.close()
    const draining = servers.map((bounded) =>
      drainServer({ ...bounded, upgrades, readiness, noticeMs: 0, logger }),
    )
    readiness.drain()
    await Promise.all(draining)
    upgrades.cutOff()
    await opened.close()
  }

  return Object.assign(app, {
    listen(...listenOn: [ListenOptions?]): Server {
      const bounded = httpServer(app, refused, HTTP_BOUNDS, serve)
      servers.push(bounded)
      // As with Express: the callback also hears why the address cannot be had.
      const told = listenOn.at(-1) as unknown
      if (isListener(told))
        bounded.server.once('error', told).once('listening', () => bounded.server.off('error', told))
      return bounded.server.on('upgrade', upgrades.handle).listen(...listenOn)
    },
    upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
      // The server gives it to the gateway, past the apps that would take the path of the mount off.
      behindMounts(app, req, () => upgrades.handle(req, socket, head))
    },
    async reload(next: object) {
      const loaded = loadConfig(next, env)
      const copy = structuredClone(next)
      await secrets.replace(async () => {
        await startable(loaded)
        source = copy
        return loaded
      })
    },
    close: () => (closed ??= end()),
  })
}

const NAMES = Object.keys({
  databaseUrl: 0,
  databaseConnections: 0,
  ledgerStallMs: 0,
  ledgerConfirmMs: 0,
  redisUrl: 0,
  adminToken: 0,
  signInProvider: 0,
  webhookAllowPrivate: 0,
  logger: 0,
  metrics: 0,
  env: 0,
} satisfies Record<keyof GatewayOptions, unknown>)

/** @throws {ConfigError} naming all faults. */
function validate(options: GatewayOptions) {
  if (!isObject(options))
    throw new ConfigError([
      "createGateway: its options must be an object, such as { databaseUrl: 'memory:' }",
    ])
  // What is undefined, such as a variable that is not set, has its default.
  const { databaseUrl = DATABASE, databaseConnections = DATABASE_CONNECTIONS, redisUrl, adminToken } = options
  const { signInProvider, webhookAllowPrivate = false, metrics = false } = options
  const { ledgerStallMs, ledgerConfirmMs, logger, env } = options
  const unknown = Object.keys(options).filter((name) => !NAMES.includes(name))
  const faults = unknown.map(
    (name) => `createGateway: there is no option "${name}"; there are ${NAMES.join(', ')}`,
  )
  const check = (name: string, fault: string | undefined | '' | false): void => {
    if (fault) faults.push(`createGateway: ${name} ${fault}`)
  }
  check('databaseUrl', databaseUrlFault(databaseUrl))
  check('databaseConnections', databaseConnectionsFault(databaseConnections))
  check('ledgerStallMs', ledgerStallMs !== undefined && ledgerTimeFault(ledgerStallMs))
  check('ledgerConfirmMs', ledgerConfirmMs !== undefined && ledgerTimeFault(ledgerConfirmMs))
  check('redisUrl', redisUrl && redisUrlFault(redisUrl))
  check('adminToken', adminToken && adminTokenFault(adminToken))
  if (signInProvider) {
    check(
      'signInProvider',
      !isObject(signInProvider) && 'must be an object with "issuer", "clientId" and "clientSecret"',
    )
    check('signInProvider', !adminToken && 'needs "adminToken" too; without it there is no admin API')
    if (isObject(signInProvider))
      for (const [member, fault] of providerFaults(signInProvider)) check(`signInProvider.${member}`, fault)
  }
  for (const [name, value] of Object.entries({ webhookAllowPrivate, metrics }))
    check(name, typeof value !== 'boolean' && 'must be true or false')
  check('logger', logger && !isLogger(logger) && 'must have "info", "warn" and "error", as pino() has')
  check('env', env && !isObject(env) && 'must be an object, such as process.env')
  if (faults.length > 0) throw new ConfigError(faults)
  return {
    databaseUrl,
    databaseConnections,
    ledgerStallMs,
    ledgerConfirmMs,
    redisUrl: redisUrl || undefined,
    adminToken: adminToken || undefined,
    signInProvider: signInProvider && completeProvider(signInProvider),
    webhookAllowPrivate,
    metrics,
    logger: logger ?? jsonLog('info'),
    env: env ?? process.env,
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isListener(value: unknown): value is (error: Error) => void {
  return typeof value === 'function'
}

function isLogger(value: Logger): boolean {
  return [value.info, value.warn, value.error].every((log) => typeof log === 'function')
}
