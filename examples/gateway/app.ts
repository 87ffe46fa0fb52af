import express, { type Express } from 'express'
import {
  adminAccess,
  authenticate,
  Budgets,
  beginCall,
  billingGuard,
  CallLogWriter,
  callLog,
  errorEnvelope,
  type GatewayConfig,
  idempotency,
  KeptThings,
  KeyUses,
  LeasePool,
  LineAccess,
  LineRegistry,
  LineSwitches,
  rateLimit,
  readRequest,
  references,
  refuseUnparsed,
  route,
  STORED_RESPONSE_PATH,
  storedResponse,
  TaskSettler,
  telemetry,
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
import { mountAdmin } from './admin-endpoints.ts'
import { type ChainOf, mountAzure } from './azure-paths.ts'
import { mountBrowserAccess } from './browser-access.ts'
import { mountCallerPages } from './caller-pages.ts'
import { servingDirectly } from './direct-calls.ts'
import { freshLineFigures } from './fresh-line-figures.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { OpenCalls } from './in-flight.ts'
import { accessLog } from './json-log.ts'
import { ledgerServes } from './ledger-readiness.ts'
import { LiveConfig } from './live-config.ts'
import { LOOKUP_PATHS, limitLookups, unlessLookup } from './look-ups.ts'
import { isForCallers, isForOperators, mountAdminPages, mountOpenPages } from './open-pages.ts'
import { keyCache } from './own-region.ts'
import { passThrough } from './pass-through.ts'
import { adminTokensIn, followSecret } from './secret-settings.ts'
import { adminTokensFault } from './settings.ts'
import { shareLines } from './share-lines.ts'
import { signIn } from './single-sign-on/sign-in.ts'
import { watchStores } from './watched-stores.ts'
import { runWebhooks } from './webhooks.ts'

/** The gateway as an Express app, and how to end what it keeps open. */
export interface Assembly {
  readonly app: Express
  /** Serves the app on a server of its own. */
  readonly serve: ReturnType<typeof servingDirectly>
  /** The app of operators, with the console, `/admin` and `/metrics`: the same one, or one of its own. */
  readonly adminApp: Express
  /** Answers what is no valid HTTP. */
  readonly refused: Express
  /** Resolves once lines are as operators have switched them. */
  readonly ready: Promise<void>
  /** The same app for WebSockets. */
  readonly upgrades: UpgradeHandler
  /** How the lines do in this process. */
  lineFigures(): Promise<readonly LineFigures[]>
  /** Takes over models, lines and routing of another config. Calls that have begun finish on what they began with. */
  adopt(next: GatewayConfig): void
  /** Waits for calls that go on without their caller, ends the connections to upstreams, writes what is queued. */
  close(): Promise<void>
}

/** For calls whose caller has left and whose upstream is drained. */
const CALLS_END_WITHIN_MS = 30_000

/** What callers with a key use. */
const CALLERS_PATHS = ['/v1', '/api/v3']
const OPERATION_PATHS = OPERATIONS.map(({ path }) => path)

/** Puts the middlewares into their order. */
export function assemble({
  config,
  stores: plain,
  logger,
  readiness,
  adminToken,
  signInProvider,
  authority,
  metricsPage,
  separateAdminApp = false,
  peers,
  regional,
  webhookAllowPrivate: allowPrivate = false,
  ledgerTimes,
}: GatewayParts): Assembly {
  const { region, bodyLimitBytes, bodyBudgetBytes, urlSigningSecret } = config
  const { stores, states: told, guarded } = watchStores(plain, regional?.watches)
  const live = new LiveConfig(config)
  const { catalog } = live
  const bodies = { catalog, bodyLimitBytes, bodyBudgetBytes }
  const lines = new LineRegistry()
  const switched = { store: stores.lineSwitches, onStoreChange: guarded.lineSwitches.onChange }
  const switches = new LineSwitches({ ...switched, lines, logger })
  const sharing = shareLines(stores.lineStates, { lines, logger, onStoreChange: guarded.lineStates.onChange })
  const retentionMs = stores.retention ? null : config.retention.calls
  const writer = new CallLogWriter({ store: stores.calls, logger, retentionMs })
  const entries = new SharedEntries(writer)
  const figures = () => catalog().lines.map((line) => lines.figures(line))
  const webhooks = runWebhooks({ ...stores, lineFigures: figures, allowPrivate, logger })
  const budgets = new Budgets({ store: stores.budgets, logger })
  regional?.regions.onCopy(() => budgets.refresh())
  const away = { onLedgerAway: config.onLedgerAway, onAwayChange: webhooks.noteLedger }
  const pool = new LeasePool({ ledger: stores.ledger, logger, ...ledgerTimes, ...away })
  readiness.addCheck('ledger', ledgerServes(pool, stores.write))
  const kept = new KeptThings({ store: stores.kept, logger, onStoreChange: guarded.kept.onChange })
  const settledBy = stores.settledByLedger ? 'ledger' : 'writer'
  const videoLines = new LineAccess({ catalog, lines, region, ...config.routing })
  const { tasks } = stores
  const video = videoEndpoints({ tasks, budgets, lines: videoLines, urlSigningSecret, logger })
  // Videos are charged whether anybody asks for them or not.
  const settler = new TaskSettler({ store: stores.tasks, clients: video.clients, logger })
  const openCalls = new OpenCalls(accessLog(logger))
  const lineFigures = () => freshLineFigures(switches, figures)

  const newApp = () => express().disable('x-powered-by').disable('etag').set('trust proxy', config.trustProxy)
  const app = newApp()
  const adminApp = separateAdminApp ? newApp() : app

  const begin = beginCall({ logger, onBegin: openCalls.add })
  const tokens = adminToken && followSecret('ADMIN_TOKEN', adminToken, logger, adminTokensFault)
  const admin = adminAccess({
    token: tokens && (() => adminTokensIn(tokens())),
    operators: stores.operators,
    sessions: stores.sessions,
  })
  const states = { admin, lines, pool, callLog: writer, webhooks, budgets, readiness, ...told }
  const observe = telemetry({ catalog, ...config.metrics, states })
  const log = callLog({ writer: entries, settledBy })
  const uses = new KeyUses({ keys: stores.adminKeys, logger })
  const identify = authenticate({ keys: stores.keys, region, onUse: uses.note, ...keyCache(regional) })
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
  const bill = billingGuard({ pool, catalog, budgets })
  const access = config.cors ? [mountBrowserAccess(app, CALLERS_PATHS, begin, config.cors)] : []
  // They come first, because every layer that stands before a route costs each of its calls 1 KB.
  const own = references({ kept })
  const chainOf: ChainOf = (naming) => {
    const read = readRequest({ ...bodies, ...naming, before: [limit, bill] })
    return [begin, observe, log, identify, read, once, own, limit, bill, toLine]
  }
  app.post(OPERATION_PATHS, chainOf())
  mountAzure(app, chainOf)

  app.use(begin)
  mountOpenPages(app, { readiness, live, serves: separateAdminApp ? isForCallers : () => true })
  if (separateAdminApp) {
    adminApp.use(begin)
    mountOpenPages(adminApp, { readiness, live, serves: isForOperators })
    // The holder of a key uses the console too.
    adminApp.use('/v1', observe, log, identify)
    adminApp.use(LOOKUP_PATHS, lookups)
  }
  mountAdminPages(adminApp, {
    metricsPage,
    signInPage: signIn(signInProvider, { sessions: stores.sessions, guesses: admin.guesses, logger }),
  })

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
  for (const each of new Set([app, adminApp])) mountCallerPages(each, { catalog, lines, stores, limit })
  app.use(
    live.following('passThrough', (rules, routing) =>
      passThrough(rules, { routing, lines, region, pool, budgets, limits: limit, kept, ...bodies }),
    ),
  )
  const reach = { lineFigures, peers, allowPrivate, regions: regional?.regions }
  mountAdmin(adminApp, { access: admin, stores, authority, catalog, lines, switches, ...reach })

  const answerError = errorEnvelope({ logger })
  for (const each of new Set([app, adminApp])) each.use(unknownPath(), answerError)

  const refused = newApp()
  refused.use(begin, observe, log, refuseUnparsed(), answerError)

  return {
    app,
    serve: servingDirectly(app, access, chainOf, answerError),
    adminApp,
    refused,
    // A store that is away is asked again every other second, and told of in the log.
    ready: Promise.allSettled([
      sharing?.refresh(),
      switches.refresh(),
      budgets.refresh().catch(() => budgets.refresh()),
    ]).then(() => {}),
    upgrades: upgradeHandler(app),
    lineFigures,
    adopt(next) {
      lines.adopt(next.catalog)
      videoLines.reroute(next.routing)
      video.signWith(next.urlSigningSecret)
      live.replace(next)
      writer.keepFor(next.retention.calls)
    },
    async close() {
      for (const polled of [switches, budgets, sharing]) polled?.close()
      await webhooks.close()
      await openCalls.ended(CALLS_END_WITHIN_MS)
      kept.close()
      await settler.close()
      await video.close()
      await lines.close()
      await pool.close()
      await once.close()
      entries.close()
      await uses.close()
      await writer.close()
    },
  }
}
