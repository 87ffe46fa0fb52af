import express, { type Express, type RequestHandler } from 'express'
import {
  accountRoutes,
  adminAccess,
  adminRoutes,
  adminTicketRoutes,
  authenticate,
  beginCall,
  billingGuard,
  CallLogWriter,
  callLog,
  callLogRoutes,
  errorEnvelope,
  type GatewayConfig,
  idempotency,
  KeptThings,
  LeasePool,
  LineAccess,
  LineRegistry,
  LineSwitches,
  type Logger,
  modelRoutes,
  rateLimit,
  readRequest,
  references,
  refuseUnparsed,
  route,
  STORED_RESPONSE_PATH,
  storedResponse,
  TaskSettler,
  telemetry,
  ticketRoutes,
  type UpgradeHandler,
  unknownPath,
  upgradeHandler,
  VIDEO_CREATE_PATHS,
  VIDEO_PATHS,
  videoEndpoints,
} from 'express-model-gateway'
import { SharedEntries } from 'express-model-gateway/call-log'
import { OPERATIONS } from 'express-model-gateway/operations'
import type { LineFigures } from 'express-model-gateway/route'
import { browserAccess } from './browser-access.ts'
import { accessLog } from './json-log.ts'
import { ledgerServes } from './ledger-readiness.ts'
import type { LimitStores } from './limit-stores.ts'
import { LiveConfig } from './live-config.ts'
import { LOOKUP_PATHS, limitLookups, unlessLookup } from './look-ups.ts'
import { mergeWorkerLines } from './merged-lines.ts'
import { OpenCalls } from './open-calls.ts'
import { mountOpenPages } from './open-pages.ts'
import { passThrough } from './pass-through.ts'
import type { Peers } from './peers.ts'
import type { Readiness } from './readiness.ts'
import type { DurableStores } from './stores.ts'
import { watchStores } from './watched-stores.ts'

/** What the gateway is put together from. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly stores: DurableStores & Pick<LimitStores, 'limits' | 'state'>
  readonly logger: Logger
  readonly readiness: Readiness
  /** What opens the admin API; undefined = there is none. */
  readonly adminToken: string | undefined
  /** Answers `GET /metrics`; undefined = there is none. */
  readonly metricsPage?: RequestHandler
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
}

/** The gateway as an Express app, and how to end what it keeps open. */
export interface Assembly {
  readonly app: Express
  /** Answers what is no valid HTTP. */
  readonly refused: Express
  /** Resolves once lines are as operators have switched them. */
  readonly ready: Promise<void>
  /** The same app for WebSockets. */
  readonly upgrades: UpgradeHandler
  /** How the lines do in this process. */
  lineFigures(): readonly LineFigures[]
  /** Takes over models, lines and routing of another config. Calls that have begun finish on what they began with. */
  adopt(next: GatewayConfig): void
  /** Waits for calls that go on without their caller, ends the connections to upstreams, writes what is queued. */
  close(): Promise<void>
}

/** For calls whose caller has left and whose upstream is drained. */
const CALLS_END_WITHIN_MS = 30_000

/** What callers with a key use. */
const CALLERS_PATHS = ['/v1', '/api/v3']

/** Puts the middlewares into their order. */
export function assemble({
  config,
  stores: plain,
  logger,
  readiness,
  adminToken,
  metricsPage,
  peers,
}: GatewayParts): Assembly {
  const { region, bodyLimitBytes, bodyBudgetBytes } = config
  const { stores, states: told, guarded } = watchStores(plain)
  const live = new LiveConfig(config)
  const { catalog } = live
  const bodies = { catalog, bodyLimitBytes, bodyBudgetBytes }
  const lines = new LineRegistry()
  const switches = new LineSwitches({
    store: stores.lineSwitches,
    lines,
    logger,
    onStoreChange: guarded.lineSwitches.onChange,
  })
  const writer = new CallLogWriter({ store: stores.calls, logger })
  const entries = new SharedEntries(writer)
  const pool = new LeasePool({ ledger: stores.ledger, logger, onLedgerAway: config.onLedgerAway })
  readiness.addCheck('ledger', ledgerServes(pool, stores.write))
  const kept = new KeptThings({
    store: stores.kept,
    logger,
    onStoreChange: guarded.kept.onChange,
  })
  const settledBy = stores.settledByLedger ? 'ledger' : 'writer'
  const videoLines = new LineAccess({ catalog, lines, region, ...config.routing })
  const video = videoEndpoints({
    tasks: stores.tasks,
    lines: videoLines,
    urlSigningSecret: config.urlSigningSecret,
    logger,
  })
  // Videos are charged whether anybody asks for them or not.
  const settler = new TaskSettler({ store: stores.tasks, clients: video.clients, logger })
  const openCalls = new OpenCalls(accessLog(logger))
  const lineFigures = () => catalog().lines.map((line) => lines.figures(line))

  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('trust proxy', config.trustProxy)

  const begin = beginCall({ logger, onBegin: openCalls.add })
  const admin = adminAccess({ token: adminToken })
  const observe = telemetry({ catalog, states: { admin, lines, pool, callLog: writer, ...told } })
  const log = callLog({ writer: entries, settledBy })
  const identify = authenticate({ keys: stores.keys, region })
  const limit = rateLimit({ store: stores.limits, onStoreError: config.onStoreError })
  const lookups = limitLookups({ store: stores.limits, ...config })
  const limitCalls = unlessLookup(limit)
  const toLine = live.following('routing', (routing) => route({ catalog, lines, region, ...routing }))
  const once = idempotency({
    store: stores.claims,
    ...(stores.answers && { answers: stores.answers }),
    logger,
    completedBy: stores.settledByLedger ? 'ledger' : 'store',
    onStoreChange: guarded.idempotency.onChange,
  })
  const bill = billingGuard({ pool, catalog })
  const read = readRequest({ ...bodies, before: [limit, bill] })
  if (config.cors) {
    const access = browserAccess(config.cors)
    // A preflight has no key, and is answered here.
    app.options(
      CALLERS_PATHS.map((path) => `${path}/*rest`),
      begin,
      access,
    )
    app.use(CALLERS_PATHS, access)
  }
  // Most calls are these. They come first, because every layer that stands before a route costs each of its calls 1 KB.
  const paths = OPERATIONS.map(({ path }) => path)
  const own = references({ kept })
  app.post(paths, begin, observe, log, identify, read, once, own, limit, bill, toLine)

  app.use(begin)
  mountOpenPages(app, { readiness, live, metricsPage })

  app.use(CALLERS_PATHS, observe, log)
  // A signed address stands for a key.
  app.get('/v1/videos/:id/content', video.signedContent)
  app.use(CALLERS_PATHS, identify)
  app.use(LOOKUP_PATHS, lookups)
  app.all(STORED_RESPONSE_PATH, limitCalls, storedResponse({ kept, catalog }), toLine)
  app.post(
    VIDEO_CREATE_PATHS,
    video.findSource,
    readRequest({ ...bodies, operation: video.operationOf, before: [limit, bill] }),
    once,
    own,
    limit,
    video.create,
  )
  app.use(VIDEO_PATHS, once, limitCalls, video.routes)
  app.use('/v1', modelRoutes({ catalog, lineStatus: (line, view) => lines.outline(line, view) }))
  app.use('/v1', callLogRoutes({ store: stores.calls }))
  app.use('/v1', accountRoutes({ ledger: stores.ledger }))
  app.post('/v1/tickets', limit)
  app.use('/v1', ticketRoutes({ store: stores.tickets, calls: stores.calls }))
  app.use(
    live.following('passThrough', (rules, routing) =>
      passThrough(rules, { routing, lines, region, pool, limits: limit, kept, ...bodies }),
    ),
  )
  app.use(
    '/admin',
    admin,
    adminRoutes({
      accounts: stores.accounts,
      ledger: stores.ledger,
      keys: stores.adminKeys,
      lines: {
        list: async () => (peers ? mergeWorkerLines(lineFigures(), await peers.ask('lines')) : lineFigures()),
        store: stores.lineSwitches,
        refresh: () => switches.refresh(),
      },
      videoTasks: stores.tasks,
      changes: stores.changes,
    }),
    callLogRoutes({ store: stores.calls, account: 'all' }),
    modelRoutes({ catalog, lineStatus: (line) => lines.figures(line) }),
    adminTicketRoutes({ store: stores.tickets, calls: stores.calls }),
  )

  app.use(unknownPath())
  app.use(errorEnvelope({ logger }))

  const refused = express().disable('x-powered-by').disable('etag').set('trust proxy', config.trustProxy)
  refused.use(begin, observe, log, refuseUnparsed(), errorEnvelope({ logger }))

  return {
    app,
    refused,
    // A store that is away is asked again every other second, and told of in the log.
    ready: switches.refresh().catch(() => {}),
    upgrades: upgradeHandler(app),
    lineFigures,
    adopt(next) {
      lines.adopt(next.catalog)
      videoLines.reroute(next.routing)
      live.replace(next)
    },
    async close() {
      switches.close()
      await openCalls.ended(CALLS_END_WITHIN_MS)
      kept.close()
      await settler.close()
      await video.close()
      await lines.close()
      await pool.close()
      await once.close()
      entries.close()
      await writer.close()
    },
  }
}
