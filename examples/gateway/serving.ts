import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import type { Addresses } from './addresses.ts'
import { HTTP_BOUNDS, httpServer } from './http-server.ts'
import type { LimitStores } from './limit-stores.ts'
import { openGateway } from './open-gateway.ts'
import type { Peers } from './peers.ts'
import type { Settings } from './settings.ts'
import { drainServer, retireServer } from './shutdown.ts'

/** A gateway that listens on its port. */
export interface Serving {
  readonly addresses: Addresses
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
  const { port, host, adminListener, noticeMs } = settings
  const gateway = await openGateway({
    ...settings,
    separateAdminApp: adminListener !== undefined,
    config,
    limits,
    logger,
    peers,
  })
  const { refused, upgrades, readiness } = gateway
  const callers = httpServer(gateway.app, refused, HTTP_BOUNDS, gateway.serve)
  callers.server.on('upgrade', upgrades.handle)
  const servers = [callers]
  try {
    await listen(callers.server, { port, host }, ['PORT', 'HOST'])
    if (adminListener) {
      const operators = httpServer(gateway.adminApp, refused)
      // An upgrade that nobody takes would leave its socket open.
      operators.server.on('upgrade', (_req, socket) => socket.destroy())
      await listen(operators.server, adminListener, ['ADMIN_PORT', 'ADMIN_HOST'])
      servers.push(operators)
    }
  } catch (error) {
    for (const { server } of servers) server.close()
    await gateway.close()
    throw error
  }
  const draining = servers.map((bounded) => ({ ...bounded, upgrades, readiness, noticeMs, logger }))
  const [callersAddress, adminAddress] = servers.map(({ server }) => server.address() as AddressInfo)

  let ended: Promise<void> | undefined
  const endAfter = async (drained: Promise<unknown>): Promise<void> => {
    await drained
    ended ??= gateway.close()
    await ended
  }
  return {
    addresses: { callers: callersAddress as AddressInfo, ...(adminAddress && { admin: adminAddress }) },
    reload: (next) => gateway.reload(next),
    stop: () => endAfter(Promise.all(draining.map((each) => drainServer(each)))),
    retire: () => endAfter(Promise.all(draining.map((each) => retireServer(each)))),
  }
}

/** @throws {ConfigError} if the address is not available. */
function listen(
  server: Server,
  { port, host }: { readonly port: number; readonly host: string },
  [portName, hostName]: readonly [string, string],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const fault =
        error.code === 'EADDRINUSE'
          ? `${portName}: ${port} is in use on ${host}; choose another one`
          : `${error.code === 'EACCES' ? portName : hostName}: cannot listen on ${host}, port ${port} (${error.code})`
      reject(new ConfigError([fault]))
    }
    server.once('error', refuse).listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}
