import type { IncomingMessage, Server } from 'node:http'
import type { ListenOptions } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Application, Express } from 'express'
import { ConfigError, type GatewayConfig, type Logger, loadConfig } from 'express-model-gateway'
import { upgradeHandler } from 'express-model-gateway/begin-call'
import { z } from 'zod'
import {
  type GivenProvider,
  readObservability,
  SHARED_OPTIONS,
  type Variables,
} from './config/environment.ts'
import { startable } from './config/packages.ts'
import { ConfigReload } from './config/reload.ts'
import { sentConfig, servedConfig } from './config/served-config.ts'
import { openGateway } from './open-gateway.ts'
import { OPENINGS, type Openings } from './openings.ts'
import { httpServer } from './serving/server.ts'
import { drainServer } from './serving/shutdown.ts'
import { openLimitStores } from './stores/limit-stores.ts'
import { openLog } from './telemetry/log.ts'

/** Options of {@link createGateway}. */
export interface GatewayOptions extends Openings {
  /**
   * Where accounts, keys, charges and the call log are kept: `sqlite:<path>`, `postgres://…` (needs the package `pg`) or
   * `memory:`, which forgets all at the end. Defaults to `sqlite:.data/gateway.db`.
   */
  readonly databaseUrl?: string | undefined
  /** Most connections to Postgres, from 12 to 1000. One that is far away needs more. Defaults to 24. */
  readonly databaseConnections?: number | undefined
  /**
   * Whether the tables of a new Postgres that grow with the calls are divided by time. Old rows are then dropped by the week or
   * month. Distributed databases cannot do this. Defaults to false.
   */
  readonly databasePartitions?: boolean | undefined
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
   * The Redis that counts limits for several processes, and keeps answers of models with a `cache`: `redis://…`, `rediss://…`, `redis+cluster://…` or
   * `redis+sentinel://…` (needs the package `ioredis`, and for answers `@keyv/redis`). Defaults to none: all of it is in this process.
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
  /** The address of the console, for links in messages to Slack. Defaults to none: they have no link. */
  readonly consoleUrl?: string | undefined
  /** Takes the log. Defaults to JSON lines on the standard output, from level `info` on. */
  readonly logger?: Logger | undefined
  /**
   * Whether to register OpenTelemetry's SDK for the whole process and to answer `GET /metrics`. Defaults to false:
   * measurements go to the providers that your app has registered.
   */
  readonly metrics?: boolean | undefined
  /**
   * The app that the server serves, for WebSockets, if a `Router` mounts the gateway in it, or if it mounted an app before that
   * app mounted the gateway. Defaults to the app that mounts the gateway.
   */
  readonly outerApp?: Express | undefined
  /** Where `env:NAME` in the config is looked up. Defaults to `process.env`. */
  readonly env?: Variables | undefined
}

/**
 * The gateway as an Express app. You can `listen` on it or mount it in another app. Its own `listen` also serves
 * WebSockets and answers broken requests with an envelope.
 */
export interface Gateway extends Express {
  /**
   * Serves WebSockets where another server has the port: `server.on('upgrade', gateway.upgrade)`. They pass the middlewares of
   * the app that mounts the gateway, as all other requests do. Express reports that app, unless a router mounts the gateway:
   * then pass it as `outerApp`.
   */
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
  /**
   * Applies the models, lines, prices and rules of another config; calls that run keep the one they began with.
   *
   * @throws {ConfigError} naming all faults; nothing has changed then.
   */
  reload(config: GatewayConfig): Promise<void>
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
export async function createGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<Gateway> {
  const { env, logger, redisUrl, metrics, outerApp, ...more } = validate(options)
  const load = (given: GatewayConfig) => servedConfig(sentConfig(loadConfig(given, env)), env)
  const valid = load(config)
  // The caller may change its object, and reload it later.
  let source: GatewayConfig = structuredClone(config)
  const limits = await openLimitStores(redisUrl, logger, valid.onStoreError)
  const observability = metrics ? readObservability(env) : undefined
  const opened = await openGateway({ config: valid, limits, redisUrl, observability, logger, ...more })
  const { app, upgrades, readiness, connections, abortCalls } = opened
  const servingApp = followMounts(app)
  const mountedUpgrades = upgradeHandler((req, res) => (outerApp ?? servingApp())(req, res))
  const servers: Server[] = []
  let closed: Promise<void> | undefined
  // A secret in a file is read again when the file changes.
  const secrets = new ConfigReload({
    files: [],
    started: valid,
    logger,
    read: async () => source,
    load: async (next) => startable(load(next as GatewayConfig), redisUrl),
    apply: (next) => opened.reload(next),
  })
  secrets.watch()

  async function end(): Promise<void> {
    secrets.close()
    const draining = servers.map((server) =>
      drainServer({ server, connections, upgrades, readiness, abortCalls, noticeMs: 0, logger }),
    )
    readiness.drain()
    await Promise.all(draining)
    upgrades.cutOff()
    mountedUpgrades.cutOff()
    await opened.close()
  }

  return Object.assign(app, {
    listen(...listenOn: [ListenOptions?]): Server {
      const server = httpServer(opened)
      servers.push(server)
      // As with Express: the callback also receives the error if it cannot listen.
      const listener = listenOn.at(-1) as unknown
      if (isListener(listener))
        server.once('error', listener).once('listening', () => server.off('error', listener))
      return server.on('upgrade', upgrades.handle).listen(...listenOn)
    },
    upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
      mountedUpgrades.handle(req, socket, head)
    },
    async reload(next: GatewayConfig) {
      const loaded = load(next)
      const copy = structuredClone(next)
      await secrets.replace(async () => {
        await startable(loaded, redisUrl)
        source = copy
        return loaded
      })
    },
    close: () => (closed ??= end()),
  })
}

const LOGGER_FAULT = 'must have "info", "warn" and "error", as pino() has'
const ENV_FAULT = 'must be an object, such as process.env'
const SWITCH_FAULT = 'must be true or false'

const OPTIONS = z
  .strictObject(
    {
      ...SHARED_OPTIONS,
      ...OPENINGS,
      webhookAllowPrivate: z.boolean(SWITCH_FAULT).default(false),
      metrics: z.boolean(SWITCH_FAULT).default(false),
      outerApp: z
        .custom<Express>((value) => typeof value === 'function', 'must be an Express app')
        .optional(),
      logger: z.custom<Logger>(isLogger, LOGGER_FAULT).optional(),
      env: z.custom<Variables>(isObject, ENV_FAULT).optional(),
    },
    "its options must be an object, such as { databaseUrl: 'memory:' }",
  )
  .refine(({ signInProvider, adminToken }) => !signInProvider || adminToken !== undefined, {
    path: ['signInProvider'],
    error: 'needs "adminToken" too; without it there is no admin API',
  })

/** @throws {ConfigError} naming all faults. */
function validate(options: GatewayOptions) {
  const { data, error } = OPTIONS.safeParse(options)
  if (!data) throw new ConfigError(error.issues.flatMap(optionFaults))
  return { ...data, logger: data.logger ?? openLog('info'), env: data.env ?? process.env }
}

function optionFaults(issue: z.core.$ZodIssue): string[] {
  if (issue.code !== 'unrecognized_keys')
    return [['createGateway:', issue.path.join('.'), issue.message].filter(Boolean).join(' ')]
  const names = Object.keys(OPTIONS.shape).join(', ')
  return issue.keys.map((name) => `createGateway: there is no option "${name}"; there are ${names}`)
}

/** Returns a function that returns the outermost app in which an app is mounted, or the app itself. */
function followMounts(app: Application): () => Application {
  let outermost = app
  const follow = (parent: Application): void => {
    outermost = parent
    parent.on('mount', follow)
  }
  app.on('mount', follow)
  return () => outermost
}

function isListener(value: unknown): value is (error: Error) => void {
  return typeof value === 'function'
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isLogger(value: unknown): boolean {
  const { info, warn, error } = (value ?? {}) as Partial<Logger>
  return [info, warn, error].every((log) => typeof log === 'function')
}
