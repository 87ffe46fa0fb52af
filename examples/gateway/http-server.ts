import { createServer, type Server, type ServerOptions } from 'node:http'
import type { Express } from 'express'
import { isWebSocketRequest, messageClassesOf } from 'express-model-gateway'

/**
 * What a caller may take of the server before any middleware has a say. Times are milliseconds.
 *
 * Behind a proxy its own bounds come first; these are for a gateway that callers reach directly.
 */
export const HTTP_BOUNDS: ServerOptions = {
  /** For the whole head of a request, from the first byte on or, on a new connection, from the beginning. */
  headersTimeout: 15_000,
  /** For the whole request: an upload of 500 MB takes 600 s at 6.7 Mbit/s. An answer may take as long as it does. */
  requestTimeout: 600_000,
  connectionsCheckingInterval: 2000,
  /** Longer than balancers keep an idle connection, so that they close it and not we. */
  keepAliveTimeout: 65_000,
  /** Bytes. */
  maxHeaderSize: 16 * 1024,
  /** A second `Authorization` is not dropped in silence: both together are no valid one. */
  joinDuplicateHeaders: true,
}

/** An HTTP server that bounds what its callers take. */
export function httpServer(app: Express, bounds: ServerOptions = HTTP_BOUNDS): Server {
  const server = createServer(
    { ...bounds, ...messageClassesOf(app), shouldUpgradeCallback: isWebSocketRequest },
    app,
  )
  // What fits into maxHeaderSize is read. By default Node drops what comes behind so many, unseen.
  server.maxHeadersCount = 0
  return server
}
