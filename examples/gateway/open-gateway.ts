import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { ConfigAuthority, configWarnings } from 'express-model-gateway/admin'
import { type Assembly, assemble } from './app.ts'
import type { DurableStores } from './durable-stores.ts'
import { errorText } from './error-text.ts'
import type { LimitStores } from './limit-stores.ts'
import { metricsPage } from './metrics-page.ts'
import type { ObservabilitySettings } from './observability-settings.ts'
import { openObservability } from './open-observability.ts'
import { loadOptional, missingPackages } from './optional-packages.ts'
import { OwnRegion } from './own-region.ts'
import type { Peers } from './peers.ts'
import { Readiness } from './readiness.ts'
import { reconcile } from './reconcile.ts'
import type { RegionSettings } from './region-settings.ts'
import type { RegionalStores } from './regional-stores.ts'
import type { ProviderSettings } from './single-sign-on/provider-settings.ts'
import { startable } from './startable-config.ts'
import { openDurableStores } from './stores.ts'

const RECONCILE_AGAIN_MS = 5000
/** Most of them in one line of the log. */
const MAX_WARNINGS = 20

export interface OpenGatewayOptions {
  readonly config: GatewayConfig
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly ledgerStallMs: number | undefined
  readonly ledgerConfirmMs: number | undefined
  readonly limits: LimitStores
  readonly adminToken: string | undefined
  /** The provider that operators sign in at; undefined = there is none. */
  readonly signInProvider: ProviderSettings | undefined
  readonly webhookAllowPrivate: boolean
  /** The other regions that this one shares accounts with; undefined = there are none. */
  readonly regions?: RegionSettings | undefined
  /** Undefined: the process has telemetry of its own, and this gateway answers no `GET /metrics`. */
  readonly observability: ObservabilitySettings | undefined
  /** Whether operators have an app of their own. Defaults to false. */
  readonly separateAdminApp?: boolean
  readonly logger: Logger
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
}

/** A gateway with its stores, which waits for requests. */
export interface OpenGateway extends Pick<Assembly, 'app' | 'serve' | 'adminApp' | 'refused' | 'upgrades'> {
  readonly readiness: Readiness
  /** Applies the members of a config that can change without a restart; never rejects. */
  reload(config: GatewayConfig): Promise<void>
  /** Ends what runs without its caller, writes what is queued and closes the stores. */
  close(): Promise<void>
}

/**
 * Opens the stores and assembles the gateway.
 *
 * @throws {ConfigError} if the database cannot be opened, or if packages that a setting needs are not installed. All is
 *   closed then, the stores of limits included.
 */
export async function openGateway(options: OpenGatewayOptions): Promise<OpenGateway> {
  const { limits, logger } = options
  const opened: Closes[] = [() => limits.close()]
  try {
    return await open(options, opened)
  } catch (error) {
    for (const cause of await closeAll(opened))
      logger.warn({ err: cause }, 'what was opened could not be closed')
    throw error
  }
}

/** @throws {ConfigError} if there are regions and this one has no name. */
function regionOf({ region }: GatewayConfig): string {
  if (region !== undefined) return region
  throw new ConfigError(['REGION_DATABASES: needs the name of this region: set GATEWAY_REGION'])
}

/** Has the stores serve accounts of other regions too, if there are any. */
async function regionally(
  stores: DurableStores,
  settings: RegionSettings | undefined,
  region: string | undefined,
  logger: Logger,
): Promise<Partial<RegionalStores> & { readonly stores: DurableStores }> {
  const { database: db } = stores
  if (!settings || !db || region === undefined) return { stores }
  const { regionalStores } = await import('./regional-stores.ts')
  return regionalStores({ region, settings, stores, db, logger })
}

type Closes = () => Promise<void>

/** Closes all, the last first, whatever some of them throw; returns that. */
async function closeAll(opened: readonly Closes[]): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const close of opened.toReversed()) await close().catch((error: unknown) => failures.push(error))
  return failures
}

/** @param opened is given what to close, the last first. */
async function open(options: OpenGatewayOptions, opened: Closes[]): Promise<OpenGateway> {
  const { databaseUrl, databaseConnections, limits, regions } = options
  const { adminToken, signInProvider, webhookAllowPrivate } = options
  const { ledgerStallMs: stallMs, ledgerConfirmMs: confirmMs } = options
  const { separateAdminApp = false, logger, peers } = options
  if (databaseUrl.startsWith('postgres') && !(await loadOptional(() => import('pg'))))
    throw missingPackages('DATABASE_URL', 'pg')
  if (signInProvider && !(await loadOptional(() => import('openid-client'))))
    throw missingPackages('OIDC_ISSUER', 'openid-client')
  await startable(options.config, regions)
  // What is this region's is known when the others can be asked.
  const first = regions ? { ...options.config, accounts: [], keys: [] } : options.config
  const region = regions && regionOf(first)
  const cannotOpen = (error: unknown): never => {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${errorText(error)})`])
  }
  const plain = await openDurableStores(databaseUrl, first, logger, databaseConnections).catch(cannotOpen)
  const { stores: durable, ...regional } = await regionally(plain, regions, region, logger)
  opened.push(() => durable.close())
  const others = regional.regions
  // A reload may name another region, which only a restart takes over.
  const own = others && region !== undefined ? new OwnRegion(region, others, logger) : undefined
  const config = own ? await own.partOf(options.config).catch(cannotOpen) : options.config
  if (own) await durable.seed(config).catch(cannotOpen)
  const { accounts, adminKeys, keys: directory, seeds } = durable
  const authority = new ConfigAuthority({ accounts, keys: adminKeys, directory, seeds }, config)
  let again: NodeJS.Timeout | undefined
  let closed = false
  opened.push(async () => {
    closed = true
    clearTimeout(again)
  })
  const isOver = (): boolean => closed
  const rule = () => reconcile(authority, logger, { isTold: peers?.logsForAll ?? true, isOver })
  let latest = options.config
  const reconciled = async (): Promise<void> => {
    clearTimeout(again)
    const isDone = await rule()
    if ((isDone && !own?.isPartial) || closed) return
    again = setTimeout(() => void (own?.isPartial ? takeOver() : reconciled()), RECONCILE_AGAIN_MS).unref()
  }
  const takeOver = async (): Promise<void> => {
    const given = latest
    try {
      const next = own ? await own.partOf(given) : given
      // A reload has come meanwhile.
      if (given !== latest) return
      authority.adopt(next)
      await durable.seed(next)
    } catch (error) {
      if (closed) return
      logger.error(
        { reason: errorText(error) },
        'new accounts and keys of the config are not in the database: send SIGHUP to try again',
      )
    }
    await reconciled()
  }
  const warn = (next: GatewayConfig): void => {
    const warnings = configWarnings(next)
    if (warnings.length === 0 || peers?.logsForAll === false) return
    const told = { count: warnings.length, warnings: warnings.slice(0, MAX_WARNINGS) }
    logger.warn(told, 'the config names models or regions that do not exist')
  }
  warn(config)
  if (config.authority !== 'config') void reconciled()
  // What a config revokes must not be let in.
  else if (!(await rule()))
    throw new ConfigError([
      'authority: the database could not be made what the config says; the log has the reason',
    ])
  const readiness = new Readiness(async () => {
    await durable.ping()
    // Without local counting, all limited calls are refused while the limit store is away.
    if (config.onStoreError === 'refuse') await limits.ping()
  })
  if (others) readiness.addNote(() => (others.away.length > 0 ? { regions_away: others.away } : {}))
  const observability = options.observability && (await openObservability(options.observability, logger))
  if (observability) opened.push(() => observability.close())
  const assembly = assemble({
    config,
    stores: {
      ...durable,
      limits: limits.limits,
      ...(limits.state && { state: limits.state }),
      ...(limits.lineStates && { lineStates: limits.lineStates }),
    },
    logger,
    ledgerTimes: { ...(stallMs !== undefined && { stallMs }), ...(confirmMs !== undefined && { confirmMs }) },
    readiness,
    adminToken,
    signInProvider,
    authority,
    webhookAllowPrivate,
    separateAdminApp,
    ...(observability && { metricsPage: metricsPage(observability.metricsText, peers) }),
    peers,
    ...(others && { regional: { regions: others, watches: regional.watches ?? {} } }),
  })
  opened.push(() => assembly.close())
  const metrics = observability?.metricsText ?? (() => '')
  peers?.reportFrom({ metrics, lines: assembly.lineFigures })
  await assembly.ready
  await limits.tried
  return {
    app: assembly.app,
    serve: assembly.serve,
    adminApp: assembly.adminApp,
    refused: assembly.refused,
    upgrades: assembly.upgrades,
    readiness,
    async reload(next) {
      if (closed) return
      latest = next
      assembly.adopt(next)
      warn(next)
      await takeOver()
    },
    async close() {
      const [failure] = await closeAll(opened)
      if (failure !== undefined) throw failure
    },
  }
}
