import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { noteUpgrade, openCall } from '../../core/call/index.ts'

/** Runs a chain for the requests that want to be upgraded. */
export interface UpgradeHandler {
  /** For `server.on('upgrade', …)`. */
  handle(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** How many connections are open that came by it. */
  readonly size: number
  /** Cuts them all: a server that closes neither ends nor counts out those that it has handed over. */
  cutOff(): void
}

/**
 * Whether a request begins a WebSocket. For the server's `shouldUpgradeCallback` (Node 24.9 and later): some clients offer
 * other upgrades, such as `h2c`, with ordinary requests, and those are to be answered as what they are.
 *
 * @example
 * const server = createServer({ shouldUpgradeCallback: isWebSocketRequest }, app)
 */
export function isWebSocketRequest(req: IncomingMessage): boolean {
  return req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Runs an Express app's own chain for WebSockets: the request goes through the same middlewares as all others, in the same
 * order, and its call answers on the socket. Whatever refuses it is answered as a plain HTTP response, and the connection
 * is closed behind it; a handler that goes on with it, such as `forward`, takes the socket with `upgradeOf(req)`.
 *
 * @param app the app, or anything that takes a request and a response.
 * @example
 * const upgrades = upgradeHandler(app)
 * server.on('upgrade', upgrades.handle)
 */
export function upgradeHandler(app: (req: IncomingMessage, res: ServerResponse) => void): UpgradeHandler {
  const open = new Set<Duplex>()

  function handle(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!(socket instanceof Socket)) {
      socket.destroy()
      return
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    noteUpgrade(req, { socket, head })
    const res = responseOn(socket, req)
    if (isWebSocketRequest(req)) app(req, res)
    else refuseOther(req, res, socket)
  }

  return {
    handle,
    get size() {
      return open.size
    },
    cutOff() {
      for (const socket of open) socket.destroy()
    },
  }
}

/** The server has let go of the socket, and does for its response no longer what it does for others. */
function responseOn(socket: Socket, req: IncomingMessage): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  const onDrain = (): void => void res.emit('drain')
  socket.on('drain', onDrain)
  res.once('finish', () => {
    socket.off('drain', onDrain)
    socket.destroySoon()
  })
  return res
}

/** Its body, if it has one, is not read by the server: nobody could serve it. */
function refuseOther(req: IncomingMessage, res: ServerResponse, socket: Socket): void {
  const call = openCall(req, socket)
  const error = call.refuse('invalid_request', {
    message: 'Only WebSockets can be upgraded to. Send the request without the header Upgrade.',
    param: 'Upgrade',
  })
  call.fail(error)
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
  res.writeHead(error.status, { 'content-type': 'application/json; charset=utf-8' })
  res.end(JSON.stringify(call.protocol.errorBody(error, call.id)))
}
