import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { createGateway } from './app.ts'
import { errorText } from './error-text.ts'
import { httpServer } from './http-server.ts'
import { metricsPage } from './metrics-page.ts'
import { startObservability } from './observability.ts'
import type { Peers } from './peers.ts'
import { Readiness } from './readiness.ts'
import type { Settings } from './settings.ts'
import { drainServer, retireServer } from './shutdown.ts'
import { type LimitStores, openDurableStores } from './stores.ts'

/** A gateway that listens on its port. */
export interface Serving {
  readonly address: AddressInfo
  /** Applies the members of a config that can change without a restart; never rejects. */
  reload(config: GatewayConfig): Promise<void>
  /** Stops the gateway after it has answered the requests that it received. A second call waits for the first. */
  stop(): Promise<void>
  /** Stops the gateway while other processes serve the port, and gives its calls more time. You can call {@link stop} after it. */
  retire(): Promise<void>
}

/** Options of {@link startServing}. */
export interface ServingOptions {
  readonly settings: Settings
  readonly config: GatewayConfig
  readonly limits: LimitStores
  readonly logger: Logger
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers
}

/**
 * Opens the stores, creates the gateway and listens.
 *
 * @throws {ConfigError} if the database cannot be opened or the address is not available.
 */
export async function startServing({
  settings,
  config,
  limits,
  logger,
  peers,
}: ServingOptions): Promise<Serving> {
  const durable = await openDurableStores(settings.databaseUrl, config, logger).catch((error: unknown) => {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${errorText(error)})`])
  })
  const readiness = new Readiness(async () => {
    await durable.ping()
    // Without local counting, all limited calls are refused while the limit store is away.
    if (config.onStoreError === 'refuse') await limits.ping()
  })
  const observability = startObservability(settings.observability, logger)
  const gateway = createGateway({
    config,
    stores: { ...durable, limits: limits.limits },
    logger,
    readiness,
    adminToken: settings.adminToken,
    metricsPage: metricsPage(observability.metricsText, peers),
    peers,
  })
  peers?.reportFrom({ metrics: observability.metricsText, lines: gateway.lineFigures })
  const { upgrades } = gateway
  const { server, connections } = httpServer(gateway.app, gateway.refused)
  server.on('upgrade', upgrades.handle)
  const draining = {
    server,
    connections,
    upgrades,
    readiness,
    noticeMs: settings.noticeMs,
    logger,
  }
  await gateway.ready
  await limits.tried
  await listen(server, settings)

  let ended: Promise<void> | undefined
  const end = async (): Promise<void> => {
    await gateway.close()
    await observability.close()
    await limits.close()
    await durable.close()
  }
  const endAfter = async (drained: Promise<unknown>): Promise<void> => {
    await drained
    ended ??= end()
    await ended
  }
  return {
    address: server.address() as AddressInfo,
    async reload(next) {
      gateway.adopt(next)
      await durable.seed(next).catch((error: unknown) => {
        logger.error(
          { reason: errorText(error) },
          'new accounts and keys of the config are not in the database: send SIGHUP to try again',
        )
      })
    },
    stop: () => endAfter(drainServer(draining)),
    retire: () => endAfter(retireServer(draining)),
  }
}

/** @throws {ConfigError} if the address is not available. */
function listen(server: Server, { port, host }: Settings): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const fault =
        error.code === 'EADDRINUSE'
          ? `PORT: ${port} is in use on ${host}; choose another one`
          : `${error.code === 'EACCES' ? 'PORT' : 'HOST'}: cannot listen on ${host}, port ${port} (${error.code})`
      reject(new ConfigError([fault]))
    }
    server.once('error', refuse).listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}
