import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { createGateway } from './app.ts'
import { Connections } from './connections.ts'
import { httpServer } from './http-server.ts'
import { metricsPage } from './metrics-page.ts'
import { startObservability } from './observability.ts'
import { oneLine } from './one-line.ts'
import type { Peers } from './peers.ts'
import { Readiness } from './readiness.ts'
import type { Settings } from './settings.ts'
import { drainServer, retireServer } from './shutdown.ts'
import { type LimitStores, openDurableStores } from './stores.ts'

/** A gateway that serves its port. */
export interface Serving {
  /** Where it listens. */
  readonly address: AddressInfo
  /** Takes over what a running gateway can of a config; never rejects. */
  reload(config: GatewayConfig): Promise<void>
  /** Ends it without failing a request it has received; twice is once. */
  stop(): Promise<void>
  /** The same where others serve the port from now on: it takes its time. {@link stop} may follow. */
  retire(): Promise<void>
}

/** What a process serves with. */
export interface ServingParts {
  readonly settings: Settings
  readonly config: GatewayConfig
  readonly limits: LimitStores
  readonly logger: Logger
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers
}

/**
 * Opens the stores, puts the gateway together and listens.
 *
 * @throws {ConfigError} when the database cannot be opened or the address cannot be had.
 */
export async function startServing({
  settings,
  config,
  limits,
  logger,
  peers,
}: ServingParts): Promise<Serving> {
  const durable = await openDurableStores(settings.databaseUrl, config, logger).catch((error: unknown) => {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${oneLine(error)})`])
  })
  const readiness = new Readiness(async () => {
    await durable.ping()
    // Where nothing is counted locally, every limited call is refused meanwhile.
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
  peers?.tellBy({ metrics: observability.metricsText, lines: gateway.lineFigures })
  const { upgrades } = gateway
  const server = httpServer(gateway.app).on('upgrade', upgrades.handle)
  const draining = { server, connections: new Connections(server), upgrades, readiness, logger }
  await gateway.ready
  await listen(server, settings)

  let ended: Promise<void> | undefined
  const end = async (): Promise<void> => {
    await gateway.close()
    await observability.close()
    await limits.close()
    await durable.close()
  }
  const endBehind = async (drained: Promise<unknown>): Promise<void> => {
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
          { reason: oneLine(error) },
          'new accounts and keys of the config are not in the database: send SIGHUP to try again',
        )
      })
    },
    stop: () => endBehind(drainServer(draining)),
    retire: () => endBehind(retireServer(draining)),
  }
}

/** @throws {ConfigError} when the address cannot be had. */
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
