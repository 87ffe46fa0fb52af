import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Express } from 'express'
import {
  cutStalledCallers,
  isWebSocketRequest,
  messageClassesOf,
  serverRefusals,
} from 'express-model-gateway'
import { Connections } from './in-flight.ts'

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

/** An HTTP server, and what runs on its connections. */
export interface BoundedServer {
  readonly server: Server
  readonly connections: Connections
}

/**
 * Creates an HTTP server with limits for its callers.
 *
 * @param refused answers what is no valid HTTP.
 * @param serve serves the app. Defaults to the app itself.
 */
export function httpServer(
  app: Express,
  refused: Express,
  bounds: ServerOptions = HTTP_BOUNDS,
  serve: RequestListener = app,
): BoundedServer {
  const server = createServer({
    ...bounds,
    ...messageClassesOf(app),
    shouldUpgradeCallback: isWebSocketRequest,
  })
  const connections = new Connections(server)
  const listeners = serverRefusals(connections.counting(serve), connections.counting(refused))
  for (const [event, listener] of Object.entries(listeners)) server.on(event, listener)
  // By default Node silently drops headers beyond a number. Here only maxHeaderSize limits them.
  server.maxHeadersCount = 0
  cutStalledCallers(server)
  return { server, connections }
}
