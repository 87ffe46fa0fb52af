import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { noteUpgrade, openCall, type Upgrade, writeRefusal } from '../../core/call/index.ts'
import { http } from '../../core/call/node-http.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { kindOf } from '../../core/options/index.ts'

/** The close frame of a gateway that stops. */
const GOING_AWAY = 1001
const SHUTDOWN = 'shutdown'

/** Runs an app's chain for upgrade requests. */
export interface UpgradeHandler {
  /** The listener for `server.on('upgrade', …)`. */
  handle(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** The number of open connections that it has handled. */
  readonly size: number
  /** Closes, with a close frame, the WebSockets on which nothing has been said for so long. */
  closeIdle(forMs: number): void
  /** Ends all open connections, WebSockets with a close frame. A closing server neither ends nor waits for them. */
  cutOff(): void
}

/**
 * Returns whether a request begins a WebSocket. Pass it as the server's `shouldUpgradeCallback` (Node 24.9 and
 * later): some clients offer other upgrades, such as `h2c`, with ordinary requests, which are then answered as such.
 *
 * @example
 * const server = createServer({ shouldUpgradeCallback: isWebSocketRequest }, app)
 */
export function isWebSocketRequest(req: IncomingMessage): boolean {
  return req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Runs an Express app's chain for WebSockets: the request passes the same middlewares as all others, in the same
 * order. A refusal is sent as a plain HTTP response, after which the connection is closed. A handler that accepts the
 * WebSocket, such as `forward`, takes the socket with `upgradeOf(req)`.
 *
 * @param app the app, or any function of a request and a response.
 * @throws TypeError if it is none.
 * @example
 * const upgrades = upgradeHandler(app)
 * server.on('upgrade', upgrades.handle)
 */
export function upgradeHandler(app: (req: IncomingMessage, res: ServerResponse) => void): UpgradeHandler {
  requireApp('upgradeHandler', app)
  const open = new Set<Upgrade>()

  function handle(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!(socket instanceof Socket)) {
      socket.destroy()
      return
    }
    const upgrade: Upgrade = { socket, head }
    open.add(upgrade)
    socket.once('close', () => open.delete(upgrade))
    noteUpgrade(req, upgrade)
    const res = responseOn(socket, req)
    if (!res) return
    if (isWebSocketRequest(req)) app(req, res)
    else refuseOther(req, res, socket)
  }

  return {
    handle,
    get size() {
      return open.size
    },
    closeIdle(forMs) {
      for (const { session } of open)
        if (session && session.idleMs >= forMs) session.close(GOING_AWAY, SHUTDOWN)
    },
    cutOff() {
      for (const { session, socket } of open) {
        if (session) session.close(GOING_AWAY, SHUTDOWN)
        else socket.destroy()
      }
    },
  }
}

/** @throws TypeError if something that is to serve requests cannot: the first one would end the process. */
export function requireApp(owner: string, app: unknown): void {
  if (typeof app !== 'function')
    throw new TypeError(
      `${owner}: it needs an app, or a function of a request and a response, not ${kindOf(app)}`,
    )
}

/**
 * Makes a response on the socket. The server no longer manages the socket, so drain and close are handled here. If the
 * request before has not been answered, the connection is cut, and there is no response.
 */
export function responseOn(socket: Socket, req: IncomingMessage): ServerResponse | undefined {
  const res = new http.ServerResponse(req)
  res.shouldKeepAlive = false
  try {
    res.assignSocket(socket)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_HTTP_SOCKET_ASSIGNED') throw error
    socket.destroy()
    return undefined
  }
  const onDrain = (): void => void res.emit('drain')
  socket.on('drain', onDrain)
  res.once('finish', () => {
    socket.off('drain', onDrain)
    socket.destroySoon()
  })
  return res
}

/** Refuses any other upgrade. The server does not read the body of an upgrade request, so no handler could serve it. */
function refuseOther(req: IncomingMessage, res: ServerResponse, socket: Socket): void {
  const error = new GatewayError('invalid_request', {
    message: 'Only WebSockets can be upgraded to. Send the request without the header Upgrade.',
    param: 'Upgrade',
  })
  writeRefusal(res, openCall(req, socket), error)
}
