import { setTimeout as sleep } from 'node:timers/promises'
import {
  CallLogWriter,
  LeasePool,
  type LeasePoolOptions,
  LineRegistry,
  type Strategy,
  videoEndpoints,
} from 'express-model-gateway'
import { KeyUses } from 'express-model-gateway/admin'
import { Connections } from 'express-model-gateway/begin-call'
import { CoalescedEntries } from 'express-model-gateway/call-log'
import type { Catalog } from 'express-model-gateway/catalog'
import { Budgets } from 'express-model-gateway/ledger'
import { UpstreamResources } from 'express-model-gateway/references'
import type { LineFigures } from 'express-model-gateway/route'
import { LineAccess, LineModels, LineSharing, LineSwitches } from 'express-model-gateway/route'
import { TaskSettler } from 'express-model-gateway/video'
import { WebhookSender, WebhookWatch } from 'express-model-gateway/webhooks'
import { LiveConfig } from './config/reload.ts'
import type { ConfigMembers } from './config/served-config.ts'
import type { WatchedStores } from './stores/stores.ts'
import { logHealth } from './telemetry/health-log.ts'

/** The options of the services. */
export interface ServicesOptions extends WatchedStores {
  readonly config: ConfigMembers
  /** How long calls wait for the ledger. Defaults to the longer the farther it is away. */
  readonly ledgerTimes?: Pick<LeasePoolOptions, 'stallMs' | 'confirmMs'> | undefined
  /** The order in which lines are tried. Defaults to the one that the config names. */
  readonly strategy?: Strategy | undefined
  /** Whether webhooks may have private addresses, and `http:` ones. */
  readonly webhookAllowPrivate: boolean
  /** The address of the console, for links in messages; undefined = they have none. */
  readonly consoleUrl?: string | undefined
}

/** The objects that middlewares and endpoints share, and the tasks that run without a request. */
export type Services = ReturnType<typeof createServices>

/** Less than a worker has for its report. */
const FRESH_WITHIN_MS = 500

/** Creates the services of a gateway. */
export function createServices(options: ServicesOptions) {
  const { config, stores, watches, ledgerTimes, webhookAllowPrivate, strategy, consoleUrl } = options
  const { logger } = stores
  const { region } = config
  const routingOptions = (routing: ConfigMembers['routing']) => ({
    ...routing,
    ...(strategy && { strategy }),
  })
  const live = new LiveConfig(config)
  const { catalog } = live

  const lines = new LineRegistry()
  const switches = new LineSwitches({
    store: stores.lineSwitches,
    lines,
    logger,
    onStoreChange: watches.lineSwitches.onChange,
  })
  const lineModels = new LineModels({ lines, logger })
  // The list is fetched before the first caller asks for it.
  void lineModels.names(catalog())
  const sharing =
    stores.lineStates &&
    new LineSharing({
      store: stores.lineStates,
      lines,
      onStoreChange: watches.lineStates.onChange,
      logger: stores.limitsLogger ?? logger,
    })
  const figures = (): readonly LineFigures[] => catalog().lines.map((line) => lines.figures(line))

  const watchedLines = () =>
    catalog().lines.map((line) => {
      const { availability, failure } = lines.reading(line)
      return { id: line.id, down: availability === 'down', failure }
    })
  const endHealthLog = logHealth(watchedLines, logger)
  const watch = new WebhookWatch({
    outbox: stores.outbox,
    source: stores.watchSource,
    lines: watchedLines,
    logger,
  })
  const webhooks = new WebhookSender({
    outbox: stores.outbox,
    allowPrivate: webhookAllowPrivate,
    ...(consoleUrl !== undefined && { consoleUrl }),
    logger,
  })

  const budgets = new Budgets({ store: stores.budgets, logger })
  const pool = new LeasePool({
    ledger: stores.ledger,
    logger,
    ...ledgerTimes,
    onStoreError: config.onLedgerAway,
    onStoreChange: (away) => watch.noteLedger(away),
  })

  const callLog = new CallLogWriter({ store: stores.calls, logger, keepEntriesMs: null })
  const entries = new CoalescedEntries(callLog)
  const keyUses = new KeyUses({ keys: stores.adminKeys, logger })
  const resources = new UpstreamResources({
    store: stores.resources,
    logger,
    onStoreChange: watches.resources.onChange,
  })

  const videoLines = new LineAccess({ catalog, lines, region, ...routingOptions(config.routing) })
  const video = videoEndpoints({
    tasks: stores.tasks,
    budgets,
    calls: stores.calls,
    lines: videoLines,
    urlSigningSecret: config.urlSigningSecret,
    logger,
  })
  // Videos are charged whether anybody asks for them or not.
  const settler = new TaskSettler({ store: stores.tasks, clients: video.clients, logger })

  const connections = new Connections({ uploadsPerKey: config.uploadsPerKey })

  return {
    live,
    /** Returns the options of routing, with the app's own strategy. */
    routingOptions,
    catalog,
    lines,
    /** Returns the names that patterns of models match. */
    modelNames: (known: Catalog) => lineModels.names(known),
    switches,
    webhooks,
    budgets,
    pool,
    callLog,
    entries,
    keyUses,
    resources,
    video,
    connections,
    /** Resolves once lines are as operators have switched them. A store that is away is asked again every other second. */
    ready: Promise.allSettled([
      sharing?.refresh(),
      switches.refresh(),
      budgets.refresh().catch(() => budgets.refresh()),
    ]).then(() => {}),
    /** Returns the figures of the lines in this process, as operators have switched them by now, unless the store takes long. */
    async lineFigures(): Promise<readonly LineFigures[]> {
      const late = sleep(FRESH_WITHIN_MS, undefined, { ref: false })
      await Promise.race([switches.refresh().catch(() => {}), late])
      return figures()
    },
    /** Takes over models, lines and routing of another config. Calls that have begun finish on what they began with. */
    adopt(next: ConfigMembers): void {
      lines.adopt(next.catalog)
      videoLines.reroute(routingOptions(next.routing))
      video.signWith(next.urlSigningSecret)
      live.replace(next)
      void lineModels.names(next.catalog)
    },
    /** Ends the connections to upstreams and writes what is queued. Call it when all calls have ended. */
    async close(): Promise<void> {
      endHealthLog()
      lineModels.close()
      for (const polled of [switches, budgets, sharing]) polled?.close()
      await watch.close()
      await webhooks.close()
      connections.close()
      resources.close()
      await settler.close()
      await video.close()
      await lines.close()
      await pool.close()
      entries.close()
      await keyUses.close()
      await callLog.close()
    },
  }
}
