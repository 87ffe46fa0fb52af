import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { type Assembly, assemble } from './app.ts'
import { errorText } from './error-text.ts'
import type { LimitStores } from './limit-stores.ts'
import { metricsPage } from './metrics-page.ts'
import type { ObservabilitySettings } from './observability-settings.ts'
import { openObservability } from './open-observability.ts'
import { loadOptional, missingPackages } from './optional-packages.ts'
import type { Peers } from './peers.ts'
import { Readiness } from './readiness.ts'
import { openDurableStores } from './stores.ts'

/** Options of {@link openGateway}. */
export interface OpenGatewayOptions {
  readonly config: GatewayConfig
  readonly databaseUrl: string
  readonly limits: LimitStores
  readonly adminToken: string | undefined
  /** Undefined: the process has telemetry of its own, and this gateway answers no `GET /metrics`. */
  readonly observability: ObservabilitySettings | undefined
  readonly logger: Logger
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
}

/** A gateway with its stores, which waits for requests. */
export interface OpenGateway extends Pick<Assembly, 'app' | 'refused' | 'upgrades'> {
  readonly readiness: Readiness
  /** Applies the members of a config that can change without a restart; never rejects. */
  reload(config: GatewayConfig): Promise<void>
  /** Ends what runs without its caller, writes what is queued and closes the stores. */
  close(): Promise<void>
}

/**
 * Opens the stores and assembles the gateway.
 *
 * @throws {ConfigError} if the database cannot be opened, or if packages that a setting needs are not installed.
 */
export async function openGateway(options: OpenGatewayOptions): Promise<OpenGateway> {
  const { config, databaseUrl, limits, adminToken, logger, peers } = options
  if (databaseUrl.startsWith('postgres') && !(await loadOptional(() => import('pg'))))
    throw missingPackages('DATABASE_URL', 'pg')
  const durable = await openDurableStores(databaseUrl, config, logger).catch((error: unknown) => {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${errorText(error)})`])
  })
  const readiness = new Readiness(async () => {
    await durable.ping()
    // Without local counting, all limited calls are refused while the limit store is away.
    if (config.onStoreError === 'refuse') await limits.ping()
  })
  const observability = options.observability && (await openObservability(options.observability, logger))
  const assembly = assemble({
    config,
    stores: { ...durable, limits: limits.limits, ...(limits.state && { state: limits.state }) },
    logger,
    readiness,
    adminToken,
    ...(observability && { metricsPage: metricsPage(observability.metricsText, peers) }),
    peers,
  })
  const metrics = observability?.metricsText ?? (() => '')
  peers?.reportFrom({ metrics, lines: assembly.lineFigures })
  await assembly.ready
  await limits.tried
  return {
    app: assembly.app,
    refused: assembly.refused,
    upgrades: assembly.upgrades,
    readiness,
    async reload(next) {
      assembly.adopt(next)
      await durable.seed(next).catch((error: unknown) => {
        logger.error(
          { reason: errorText(error) },
          'new accounts and keys of the config are not in the database: send SIGHUP to try again',
        )
      })
    },
    async close() {
      await assembly.close()
      await observability?.close()
      await limits.close()
      await durable.close()
    },
  }
}
