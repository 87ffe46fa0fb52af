import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Express } from 'express'
import {
  cutStalledCallers,
  isWebSocketRequest,
  messageClassesOf,
  serverRefusals,
} from 'express-model-gateway'

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

interface Use {
  /** How many requests on the connection are not answered completely. */
  open: number
  idleSince: number
  /** Bytes received when the connection became idle; more bytes are the beginning of another request. */
  read: number
  /** Notes that a request of it is answered. */
  readonly end: () => void
}

/**
 * The most requests that a caller may send on a connection before the first of them is answered. Node begins all that
 * have come in one packet, which can be a thousand. Clients in use send one at a time.
 */
const MAX_UNANSWERED = 32

/** Tracks what runs on each connection of a server, and since when it is idle, which Node does not report. */
export class Connections {
  readonly #uses = new Map<Socket, Use>()

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      const end = (): void => {
        use.open--
        use.idleSince = performance.now()
        use.read = socket.bytesRead
      }
      const use: Use = { open: 0, idleSince: performance.now(), read: 0, end }
      this.#uses.set(socket, use)
      socket.once('close', () => this.#uses.delete(socket))
    })
  }

  /**
   * Returns a listener that passes requests on, and counts them until they are answered. It cuts a connection that has too many
   * unanswered ones: no answer could overtake theirs.
   */
  counting(app: RequestListener): RequestListener {
    return (req, res) => {
      const use = this.#uses.get(req.socket)
      if (use !== undefined) {
        use.open++
        res.on('close', use.end)
        if (use.open > MAX_UNANSWERED) {
          req.socket.destroy()
          return
        }
      }
      app(req, res)
    }
  }

  /**
   * Closes connections that have been idle since before a time. It runs after bytes that have arrived are read, so that no
   * request is lost.
   *
   * @param before a time of the monotonic clock.
   */
  endIdle(before: number): void {
    setImmediate(() => {
      for (const [socket, { open, idleSince, read }] of this.#uses) {
        if (open === 0 && idleSince < before && socket.bytesRead === read) socket.destroy()
      }
    })
  }
}
