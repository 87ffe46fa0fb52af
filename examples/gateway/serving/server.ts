import { createServer, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo, Server as TcpServer } from 'node:net'
import type { Express } from 'express'
import { ConfigError, type Logger } from 'express-model-gateway'
import {
  type Connections,
  cutStalledCallers,
  isWebSocketRequest,
  serverRefusals,
} from 'express-model-gateway/begin-call'
import type { Settings } from '../config/environment.ts'
import type { ServedConfig } from '../config/served-config.ts'
import { openGateway } from '../open-gateway.ts'
import { importOpenings } from '../openings.ts'
import type { LimitStores } from '../stores/limit-stores.ts'
import type { Addresses } from '../workers/messages.ts'
import type { Peers } from '../workers/reports.ts'
import { drainServer, type Listening, listenThrough, retireServer } from './shutdown.ts'

/**
 * The limits of the HTTP server, which apply before any middleware. Times are milliseconds. They protect a gateway that
 * callers reach directly; a proxy in front of it has limits of its own.
 */
export const HTTP_BOUNDS: ServerOptions = {
  /** The limit for all headers of a request, from its first byte on, or from the beginning of a new connection. */
  headersTimeout: 15_000,
  /** The limit for a whole request: an upload of 500 MB takes 600 s at 6.7 Mbit/s. Answers have no limit. */
  requestTimeout: 600_000,
  connectionsCheckingInterval: 2000,
  /** Longer than the idle timeout of balancers, so that they close idle connections, and not this server. */
  keepAliveTimeout: 65_000,
  /** In bytes. */
  maxHeaderSize: 16 * 1024,
  /** Joins a second `Authorization` with the first, which makes both invalid, instead of ignoring it. */
  joinDuplicateHeaders: true,
  /** Refused with an envelope instead. */
  requireHostHeader: false,
}

/** The parts of a gateway that a server serves. */
export interface Served {
  readonly app: Express
  /** Answers what is no valid HTTP. */
  readonly refused: Express
  readonly connections: Connections
}

/** Creates an HTTP server with limits for its callers. */
export function httpServer(
  { app, refused, connections }: Served,
  bounds: ServerOptions = HTTP_BOUNDS,
): Server {
  const server = createServer({ ...bounds, shouldUpgradeCallback: isWebSocketRequest })
  connections.watch(server)
  for (const [event, listener] of Object.entries(serverRefusals(app, refused))) server.on(event, listener)
  // By default Node silently drops headers beyond a number. Here only maxHeaderSize limits them.
  server.maxHeadersCount = 0
  cutStalledCallers(server)
  return server
}

/** A gateway that listens on its port. */
export interface Serving {
  readonly addresses: Addresses
  /** Applies the members of a config that can change without a restart; never rejects. */
  reload(config: ServedConfig): Promise<void>
  /** Stops the gateway after it has answered the requests that it received. A second call waits for the first. */
  stop(): Promise<void>
  /** Stops the gateway while other processes serve the port, and gives its calls more time. You can call {@link stop} after it. */
  retire(): Promise<void>
}

/** Options of {@link startServing}. */
export interface ServingOptions {
  readonly settings: Settings
  readonly config: ServedConfig
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
  const { use, ...given } = settings
  const { port, host, adminListener, noticeMs } = given
  const gateway = await openGateway({
    ...given,
    ...(use !== undefined && (await importOpenings(use))),
    separateAdminApp: adminListener !== undefined,
    config,
    limits,
    logger,
    peers,
  })
  const { refused, upgrades, readiness, connections, abortCalls } = gateway
  const callers = httpServer(gateway).on('upgrade', upgrades.handle)
  const servers: Listening[] = []
  try {
    const listener = await listen(callers, { port, host }, ['PORT', 'HOST'])
    servers.push({ server: callers, listener })
    if (adminListener) {
      const operators = httpServer({ app: gateway.adminApp, refused, connections })
      // An upgrade that nobody takes would leave its socket open.
      operators.on('upgrade', (_req, socket) => socket.destroy())
      const admin = await listen(operators, adminListener, ['ADMIN_PORT', 'ADMIN_HOST'])
      servers.push({ server: operators, listener: admin })
    }
  } catch (error) {
    for (const { server } of servers) server.close()
    await gateway.close()
    throw error
  }
  const draining = servers.map((listening) => ({
    ...listening,
    connections,
    upgrades,
    readiness,
    abortCalls,
    noticeMs,
    logger,
  }))
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
): Promise<TcpServer> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const fault =
        error.code === 'EADDRINUSE'
          ? `${portName}: ${port} is in use on ${host}; choose another one`
          : `${error.code === 'EACCES' ? portName : hostName}: cannot listen on ${host}, port ${port} (${error.code})`
      reject(new ConfigError([fault]))
    }
    const listener = listenThrough(server.once('error', refuse), { port, host })
    server.once('listening', () => {
      server.off('error', refuse)
      resolve(listener)
    })
  })
}
