import { ConfigError, type Logger } from 'express-model-gateway'
import { type Assembly, assemble } from './app.ts'
import { ConfigSync } from './config/config-sync.ts'
import type { ObservabilitySettings, ProviderSettings } from './config/environment.ts'
import { loadOptional, missingPackages, startable } from './config/packages.ts'
import { membersOf, type ServedConfig } from './config/served-config.ts'
import { errorText } from './errors.ts'
import type { Openings } from './openings.ts'
import { Readiness } from './serving/readiness.ts'
import { openCacheStore } from './stores/cache-store.ts'
import type { LimitStores } from './stores/limit-stores.ts'
import { openDurableStores } from './stores/stores.ts'
import { metricsPage, openObservability } from './telemetry/observability.ts'
import type { Peers } from './workers/reports.ts'

export interface OpenGatewayOptions extends Openings {
  readonly config: ServedConfig
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly databasePartitions: boolean
  readonly ledgerStallMs?: number | undefined
  readonly ledgerConfirmMs?: number | undefined
  readonly limits: LimitStores
  /** The Redis that keeps answers for repeated requests; undefined = the memory of this process does. */
  readonly redisUrl?: string | undefined
  readonly adminToken?: string | undefined
  /** The provider that operators sign in at; undefined = there is none. */
  readonly signInProvider?: ProviderSettings | undefined
  readonly webhookAllowPrivate: boolean
  /** The address of the console, for links in messages; undefined = they have none. */
  readonly consoleUrl?: string | undefined
  /** Undefined: the process has telemetry of its own, and this gateway answers no `GET /metrics`. */
  readonly observability: ObservabilitySettings | undefined
  /** Whether operators have an app of their own. Defaults to false. */
  readonly separateAdminApp?: boolean
  readonly logger: Logger
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
}

/** A gateway with its stores, which waits for requests. */
export interface OpenGateway
  extends Pick<Assembly, 'app' | 'adminApp' | 'refused' | 'connections' | 'upgrades' | 'abortCalls'> {
  readonly readiness: Readiness
  /** Applies the members of a config that can change without a restart; never rejects. */
  reload(config: ServedConfig): Promise<void>
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

type Closes = () => void | Promise<void>

/** Closes all, the last first, whatever some of them throw; returns that. */
async function closeAll(opened: readonly Closes[]): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const close of opened.toReversed()) {
    try {
      await close()
    } catch (error) {
      failures.push(error)
    }
  }
  return failures
}

/** @param opened is given what to close, the last first. */
async function open(options: OpenGatewayOptions, opened: Closes[]): Promise<OpenGateway> {
  const { config, limits, logger, peers, ledgerStallMs: stallMs, ledgerConfirmMs: confirmMs } = options
  await requirePackages(options)
  const stores = await openStores(options)
  opened.push(() => stores.close())

  const answers = options.redisUrl === undefined ? undefined : await openCacheStore(options.redisUrl)
  if (answers) opened.push(() => answers.close())

  const configSync = new ConfigSync(config, { stores, logger, logs: () => peers?.logsForAll ?? true })
  opened.push(() => configSync.close())
  await configSync.start(config)
  const members = membersOf(config)

  const readiness = new Readiness(async () => {
    await stores.ping()
    // Without local counting, all limited calls are refused while the limit store is away.
    if (members.onStoreError === 'refuse') await limits.ping()
  })
  const observability = options.observability && (await openObservability(options.observability, logger))
  if (observability) opened.push(() => observability.close())

  const own = { ...options.stores, ...(options.keys && { keys: options.keys }) }
  const assembly = assemble({
    ...options,
    config: members,
    own,
    stores: {
      ...stores,
      limits: limits.limits,
      ...(limits.state && { state: limits.state }),
      ...(limits.lineStates && { lineStates: limits.lineStates }),
      ...(answers && { cache: answers.store }),
      ...(limits.limitsLogger && { limitsLogger: limits.limitsLogger }),
      ...own,
    },
    ledgerTimes: { ...(stallMs !== undefined && { stallMs }), ...(confirmMs !== undefined && { confirmMs }) },
    readiness,
    authority: configSync.authority,
    ...(observability && { metricsPage: metricsPage(observability.metricsText, peers) }),
  })
  opened.push(() => assembly.close())
  peers?.reportFrom({ metrics: observability?.metricsText ?? (() => ''), lines: assembly.lineFigures })
  await assembly.ready
  await limits.tried

  let closing = false
  const { app, adminApp, refused, connections, upgrades, abortCalls } = assembly
  return {
    ...{ app, adminApp, refused, connections, upgrades, abortCalls, readiness },
    reload(next) {
      if (closing) return Promise.resolve()
      assembly.adopt(membersOf(next))
      return configSync.adopt(next)
    },
    async close() {
      closing = true
      const [failure] = await closeAll(opened)
      if (failure !== undefined) throw failure
    },
  }
}

/** @throws {ConfigError} if packages that a setting needs are not installed. */
async function requirePackages(options: OpenGatewayOptions): Promise<void> {
  const { config, databaseUrl, signInProvider, redisUrl } = options
  if (databaseUrl.startsWith('postgres') && !(await loadOptional(() => import('pg'))))
    throw missingPackages('DATABASE_URL', 'pg')
  if (signInProvider && !(await loadOptional(() => import('openid-client'))))
    throw missingPackages('OIDC_ISSUER', 'openid-client')
  await startable(config, redisUrl)
}

/** @throws {ConfigError} if the database cannot be opened. */
async function openStores(options: OpenGatewayOptions) {
  const { databaseUrl, config, logger, databaseConnections, databasePartitions } = options
  try {
    return await openDurableStores(databaseUrl, config, logger, databaseConnections, databasePartitions)
  } catch (error) {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${errorText(error)})`])
  }
}
