import { type ClientRequest, Agent as HttpAgent, IncomingMessage, ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import { createProxyMiddleware } from 'http-proxy-middleware'

/** What is told of one exchange. Each may come late: after the exchange is over. */
export interface UpstreamEvents {
  /** The request has been made; its socket may still be connecting. */
  requested(request: ClientRequest): void
  answered(response: IncomingMessage): void
  /** The line has answered a handshake, and not switched protocols. */
  refused(response: IncomingMessage): void
  /** The line has switched protocols. */
  switched(response: IncomingMessage, socket: Duplex): void
  failed(error: Error): void
}

/** Where a request goes. */
export interface UpstreamTarget {
  readonly origin: string
  /** With the query. */
  readonly path: string
  readonly method: string
  /** The caller's own headers, as far as they go on. */
  readonly headers: Record<string, string>
  /** Credentials and what else the gateway adds. */
  readonly lineHeaders: Record<string, string>
}

/**
 * The request that the proxy is given. It is not the caller's, for two reasons:
 *
 * - The proxy copies every header of the request that it is given, and no option leaves one out: `headers` only adds, and
 *   `proxyReq`, in which they could be removed, does not come for a request with `Expect`. The caller's key would leak.
 * - It destroys the response that it is given when the upstream breaks off, `selfHandleResponse` or not, before anybody
 *   could answer with an error.
 */
class OutboundRequest extends IncomingMessage {
  readonly target: UpstreamTarget
  readonly events: UpstreamEvents
  readonly body: Readable | undefined

  constructor(socket: Socket, target: UpstreamTarget, events: UpstreamEvents, body?: Readable) {
    super(socket)
    this.method = target.method
    this.url = target.path
    this.headers = target.headers
    this.target = target
    this.events = events
    this.body = body
  }
}

/**
 * The socket that the proxy is given for an upgrade, and whose other end nobody reads: the proxy writes the head of the
 * upstream's answer there as it came, cookies and request ids included, and there is no `selfHandleResponse` for it.
 */
class UnreadSocket extends Socket {
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done()
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done()
  }
}

/**
 * A connection for each exchange: one that was kept alive may be dead without anybody knowing, and what has begun to be
 * sent on it cannot be sent again.
 */
const HTTP_AGENT = new HttpAgent({ keepAlive: false })
const HTTPS_AGENT = new HttpsAgent({ keepAlive: false })

/**
 * http-proxy-middleware makes the upstream's request, with the line's headers over the caller's, and sends the body as
 * fast as the upstream takes it. It neither answers nor upgrades by itself.
 */
const proxy = createProxyMiddleware<OutboundRequest, ServerResponse>({
  ws: false,
  selfHandleResponse: true,
  followRedirects: false,
  pathFilter: () => true,
  router: ({ target, body }, _res, options) => {
    // Not in the event `proxyReq`: that one does not come for a request with "Expect", which then keeps the caller's.
    options.headers = target.lineHeaders
    options.agent = target.origin.startsWith('https:') ? HTTPS_AGENT : HTTP_AGENT
    if (body) options.buffer = body
    return target.origin
  },
  // Those that come with it answer errors in words of their own; without them there is no `on` either.
  ejectPlugins: true,
  plugins: [
    (server) => {
      server.on('proxyReq', (request, { events }) => events.requested(request))
      server.on('proxyRes', (response, { events }) => events.answered(response))
      server.on('proxyReqWs', (request, { events }, socket) => watchUpgrade(request, events, socket))
      server.on('error', (error, req) => req?.events.failed(error))
      server.on('econnreset', (error, { events }) => events.failed(error))
    },
  ],
})

/** Follows a handshake. The proxy joins the two sockets when the line has switched; they are parted again at once. */
function watchUpgrade(request: ClientRequest, events: UpstreamEvents, unread: Socket): void {
  events.requested(request)
  request.on('response', (response) => {
    // Before the proxy hears of it, which passes nothing on to a socket that is destroyed.
    unread.destroy()
    events.refused(response)
  })
  // Behind the proxy, which sets its listener right after this event: nothing has flowed by then.
  queueMicrotask(() => {
    request.on('upgrade', (response, socket) => {
      socket.unpipe(unread)
      unread.unpipe(socket)
      events.switched(response, socket)
    })
  })
}

/** Sends a request, and a body once that is given. */
export function sendUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
  body: Readable,
): void {
  const req = new OutboundRequest(caller.socket, target, events, body)
  const failed = (error: unknown): void => events.failed(asError(error))
  proxy(req, new ServerResponse(req), failed).catch(failed)
}

/** Sends a WebSocket's handshake. */
export function upgradeUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
): void {
  proxy.upgrade(new OutboundRequest(caller.socket, target, events), new UnreadSocket(), Buffer.alloc(0))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the proxy did not take the request')
}
