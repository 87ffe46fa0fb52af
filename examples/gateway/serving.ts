import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { httpServer } from './http-server.ts'
import type { LimitStores } from './limit-stores.ts'
import { openGateway } from './open-gateway.ts'
import type { Peers } from './peers.ts'
import type { Settings } from './settings.ts'
import { drainServer, retireServer } from './shutdown.ts'

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
  const gateway = await openGateway({ ...settings, config, limits, logger, peers })
  const { server, connections } = httpServer(gateway.app, gateway.refused)
  server.on('upgrade', gateway.upgrades.handle)
  const { upgrades, readiness } = gateway
  const draining = { server, connections, upgrades, readiness, noticeMs: settings.noticeMs, logger }
  await listen(server, settings)

  let ended: Promise<void> | undefined
  const endAfter = async (drained: Promise<unknown>): Promise<void> => {
    await drained
    ended ??= gateway.close()
    await ended
  }
  return {
    address: server.address() as AddressInfo,
    reload: (next) => gateway.reload(next),
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
