import express, { type Express, type RequestHandler } from 'express'
import {
  authenticate,
  beginCall,
  billingGuard,
  type Call,
  callLog,
  errorEnvelope,
  idempotency,
  type Logger,
  rateLimit,
  readRequest,
  references,
  route,
  telemetry,
  unknownPath,
} from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import {
  type Connections,
  refuseUnparsed,
  trustedProxies,
  type UpgradeHandler,
  upgradeHandler,
} from 'express-model-gateway/begin-call'
import { OPERATIONS } from 'express-model-gateway/operations'
import { STORED_RESPONSE_PATH, storedResponse } from 'express-model-gateway/responses'
import { VIDEO_CREATE_PATHS, VIDEO_PATHS } from 'express-model-gateway/video'
import { azurePaths, DEPLOYMENT_CALLS, DEPLOYMENTS, OF_DEPLOYMENT } from './azure-paths.ts'
import { browserAccess } from './browser-access.ts'
import { modelCache } from './cache.ts'
import type { ProviderSettings } from './config/environment.ts'
import type { ConfigMembers } from './config/served-config.ts'
import { LOOKUP_PATHS, limitLookups, mountLookups, passThrough, unlessLookup } from './endpoints.ts'
import { guardsOf } from './guards.ts'
import { mountManagement, operatorAccess } from './management.ts'
import { listOf, type Openings, type OwnStores, passAnswered } from './openings.ts'
import { isForCallers, isForOperators, mountOpenPages, mountOperatorPages } from './pages.ts'
import { createServices, type Services, type ServicesOptions } from './services.ts'
import { ledgerServes, type Readiness } from './serving/readiness.ts'
import { OpenCalls } from './serving/shutdown.ts'
import { signIn } from './single-sign-on/sign-in.ts'
import { type Stores, type WatchedStores, watchStores } from './stores/stores.ts'
import { accessLog } from './telemetry/log.ts'
import type { Peers } from './workers/reports.ts'

/** The parts of which the gateway is made. */
export interface GatewayParts
  extends Pick<ServicesOptions, 'ledgerTimes' | 'consoleUrl'>,
    Pick<Openings, 'use' | 'strategy'> {
  readonly config: ConfigMembers
  readonly stores: Stores
  /** The stores that the app has brought. */
  readonly own?: OwnStores | undefined
  readonly logger: Logger
  readonly readiness: Readiness
  /** The token of the admin API; undefined = there is no admin API. */
  readonly adminToken?: string | undefined
  /** The provider that operators sign in at; undefined = there is none. */
  readonly signInProvider?: ProviderSettings | undefined
  /** Compares config and database, for operators. */
  readonly authority?: ConfigAuthority
  /** Answers `GET /metrics`; undefined = there is none. */
  readonly metricsPage?: RequestHandler
  /** Whether operators have an app of their own. Defaults to false. */
  readonly separateAdminApp?: boolean
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
  /** Whether webhooks may have private addresses, and `http:` ones. Defaults to false. */
  readonly webhookAllowPrivate?: boolean
}

/** The gateway as an Express app, and how to end what it keeps open. */
export interface Assembly extends Pick<Services, 'ready' | 'lineFigures' | 'adopt'> {
  readonly app: Express
  /** The app of operators, with the console, `/admin` and `/metrics`: the same one, or one of its own. */
  readonly adminApp: Express
  /** Answers what is no valid HTTP. */
  readonly refused: Express
  readonly connections: Connections
  /** The same app for WebSockets. */
  readonly upgrades: UpgradeHandler
  /** Ends the calls that run, but for WebSockets. */
  abortCalls(): void
  /** Waits for calls that go on without their caller, ends the connections to upstreams, writes what is queued. */
  close(): Promise<void>
}

/** The paths for callers with a key. */
const CALLERS = ['/v1', '/api/v3', DEPLOYMENTS]
const MODEL_CALLS = OPERATIONS.map(({ path }) => path)

/** For calls whose caller has left and whose upstream is drained. */
const CALLS_END_WITHIN_MS = 30_000

/** Creates the middlewares of the chain, in their order. Some of them have more than one place. */
function createChain(services: Services, watched: WatchedStores, parts: ChainParts) {
  const { config, logger, readiness, access, onBegin, own = {} } = parts
  const { stores, states, watches } = watched
  const { catalog, lines, pool, budgets, resources, live, webhooks, callLog: writer } = services
  const { region, onStoreError, tokens } = config
  return {
    beginCall: beginCall({ logger, onBegin }),
    telemetry: telemetry({
      catalog,
      ...config.metrics,
      states: { ...states, admin: access, lines, pool, callLog: writer, webhooks, budgets, readiness },
    }),
    callLog: callLog({ writer: services.entries, settledBy: own.calls ? 'writer' : 'ledger' }),
    authenticate: authenticate({ keys: stores.keys, region, onUse: services.keyUses.note }),
    cache: modelCache({ stores, watches, pool, budgets, onStoreError }),
    idempotency: idempotency({
      store: stores.claims,
      answers: stores.answers,
      logger: stores.logger,
      settledBy: own.claims || own.ledger ? 'store' : 'ledger',
      unresolved: services.video.unresolved,
      onStoreChange: watches.idempotency.onChange,
    }),
    references: references({ resources }),
    rateLimit: rateLimit({ store: stores.limits, onStoreError, tokens }),
    billingGuard: billingGuard({ pool, catalog, budgets }),
    route: live.following('routing', (routing) =>
      route({ catalog, lines, region, ...services.routingOptions(routing) }),
    ),
  }
}

interface ChainParts extends Pick<GatewayParts, 'config' | 'logger' | 'readiness' | 'own'> {
  readonly access: ReturnType<typeof operatorAccess>
  readonly onBegin: (call: Call) => void
}

/** Mounts the chain, the endpoints beside it, the pages and management. */
export function assemble(parts: GatewayParts): Assembly {
  const { config, logger, readiness, peers, separateAdminApp = false, webhookAllowPrivate = false } = parts
  const { region, bodyLimitBytes, bodyBudgetBytes, onStoreError, lookupsPerMinute } = config
  const watched = watchStores(parts.stores)
  const { stores } = watched
  const services = createServices({
    ...watched,
    ...{ config, webhookAllowPrivate },
    ledgerTimes: parts.ledgerTimes,
    strategy: parts.strategy,
    consoleUrl: parts.consoleUrl,
  })
  const { live, catalog, pool, resources, video, connections } = services
  readiness.addCheck('ledger', ledgerServes(pool, stores.write))
  const openCalls = new OpenCalls(accessLog(logger))
  const access = operatorAccess(parts.adminToken, stores, logger)
  const { own, use = {} } = parts
  const chain = createChain(services, watched, {
    config,
    logger,
    readiness,
    access,
    own,
    onBegin: openCalls.add,
  })
  const answered = passAnswered(use, logger)
  const read = [...listOf(use.read)]
  const { idempotency, references, rateLimit, billingGuard, route } = chain

  // The chain of a model call.
  const app = newApp(config)
  app.use(azurePaths)
  app.use(connections.inTurn)
  app.use(chain.beginCall)
  if (answered) app.use(CALLERS, answered)
  if (use.first) app.use(...listOf(use.first))
  // One by one: a router would pass a call on in the next turn of the event loop only.
  if (config.cors) app.use(CALLERS, browserAccess(config.cors))
  app.use(CALLERS, chain.telemetry, chain.callLog)
  // A signed address stands for a key.
  app.get('/v1/videos/:id/content', video.signedContent)
  app.use(CALLERS, chain.authenticate, connections.admit)
  if (use.authenticated) app.use(CALLERS, ...listOf(use.authenticated))
  const bodies = { catalog, bodyLimitBytes, bodyBudgetBytes, before: [rateLimit, billingGuard] }
  const guards = live.following('guards', (given) => guardsOf(given, catalog))
  const afterRead = [...read, guards, chain.cache, idempotency, references, rateLimit, billingGuard, route]
  app.post(MODEL_CALLS, readRequest(bodies), afterRead)
  app.post(DEPLOYMENT_CALLS, readRequest({ ...bodies, ...OF_DEPLOYMENT }), afterRead)

  // Beside it: stored responses, videos, what callers look up, and what is passed on unread.
  const limitOfLookups = limitLookups({ store: stores.limits, onStoreError, lookupsPerMinute })
  app.use(LOOKUP_PATHS, limitOfLookups)
  app.all(
    STORED_RESPONSE_PATH,
    unlessLookup(rateLimit),
    storedResponse({ resources, catalog }),
    guards,
    route,
  )
  const readVideo = readRequest({ ...bodies, operation: video.operationOf })
  app.post(
    VIDEO_CREATE_PATHS,
    video.findSource,
    readVideo,
    read,
    guards,
    idempotency,
    references,
    rateLimit,
    video.create,
  )
  app.use(VIDEO_PATHS, idempotency, unlessLookup(rateLimit), video.routes)
  mountLookups(app, { ...services, stores, limit: rateLimit })
  mountOpenPages(app, { readiness, live, serves: separateAdminApp ? isForCallers : () => true })
  app.use(
    live.following('passThrough', (rules, routing) =>
      passThrough(rules, { ...services, routing, region, limit: rateLimit, bodyLimitBytes, bodyBudgetBytes }),
    ),
  )

  // For operators, at the same port or at one of their own. The holder of a key uses the console too.
  const adminApp = separateAdminApp ? newApp(config) : app
  if (separateAdminApp) {
    adminApp.use(connections.inTurn)
    adminApp.use(chain.beginCall)
    mountOpenPages(adminApp, { readiness, live, serves: isForOperators })
    adminApp.use('/v1', chain.telemetry, chain.callLog, chain.authenticate, connections.admit)
    adminApp.use(LOOKUP_PATHS, limitOfLookups)
    mountLookups(adminApp, { ...services, stores, limit: rateLimit })
  }
  const { sessions } = stores
  const signInPage = signIn(parts.signInProvider, { sessions, guesses: access.guesses, logger })
  mountOperatorPages(adminApp, { metricsPage: parts.metricsPage, signInPage })
  const { authority } = parts
  mountManagement(adminApp, { ...services, access, stores, authority, peers, webhookAllowPrivate })

  // The app for requests that are no valid HTTP.
  const refused = newApp(config)
  refused.use(connections.inTurn, chain.beginCall, chain.telemetry, chain.callLog, refuseUnparsed())

  // Errors come last, from whatever is mounted before.
  for (const each of new Set([app, adminApp])) each.use(unknownPath())
  for (const each of new Set([app, adminApp, refused])) each.use(errorEnvelope({ logger: stores.logger }))

  return {
    app,
    adminApp,
    refused,
    connections,
    ready: services.ready,
    upgrades: upgradeHandler(app),
    lineFigures: services.lineFigures,
    adopt: services.adopt,
    abortCalls: openCalls.abort,
    async close() {
      await openCalls.ended(CALLS_END_WITHIN_MS)
      await idempotency.close()
      await chain.cache.close()
      await services.close()
    },
  }
}

function newApp({ trustProxy }: ConfigMembers): Express {
  return express().disable('x-powered-by').disable('etag').set('trust proxy', trustedProxies(trustProxy))
}
