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
  /** The line has switched protocols. */
  switched(response: IncomingMessage, socket: Duplex, head: Buffer): void
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
 * The request that the proxy is given in place of the caller's. It would pass on every header of that one, and it keeps
 * a hold on whatever request and response it is given: it destroys the response when the upstream breaks, and ends the
 * socket of a failed upgrade, before anybody could answer with an error.
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
 * A connection for each exchange: one that was kept alive may be dead without anybody knowing, and what has begun to be
 * sent on it cannot be sent again.
 */
const HTTP_AGENT = new HttpAgent({ keepAlive: false })
const HTTPS_AGENT = new HttpsAgent({ keepAlive: false })

/**
 * http-proxy-middleware with what it does on its own switched off: it neither answers nor upgrades by itself, and knows
 * no default handling of errors. What it does: it makes the upstream's request, with the line's headers over the
 * caller's, and sends the body as fast as the upstream takes it.
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
      server.on('proxyReqWs', (request, { events }) => takeOverUpgrade(request, events))
      server.on('error', (error, req) => req?.events.failed(error))
      server.on('econnreset', (error, { events }) => events.failed(error))
    },
  ],
})

/**
 * There is no `selfHandleResponse` for an upgrade: the proxy would at once write the upstream's 101, or its refusal
 * with every header and its body, to the caller. It sets its listeners right behind this event.
 */
function takeOverUpgrade(request: ClientRequest, events: UpstreamEvents): void {
  events.requested(request)
  queueMicrotask(() => {
    request.removeAllListeners('response').removeAllListeners('upgrade')
    request.on('response', (response) => events.answered(response))
    request.on('upgrade', (response, socket, head) => events.switched(response, socket, head))
  })
}

/**
 * Sends a request.
 *
 * @param body what is sent, once it is given.
 * @returns ends whatever is left of the exchange.
 */
export function sendUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
  body: Readable,
): () => void {
  const req = new OutboundRequest(caller.socket, target, events, body)
  const res = new ServerResponse(req)
  proxy(req, res, (error) => events.failed(asError(error))).catch((error: unknown) =>
    events.failed(asError(error)),
  )
  return () => void res.emit('close')
}

/** Sends a WebSocket's handshake. */
export function upgradeUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
): () => void {
  const socket = new Socket()
  proxy.upgrade(new OutboundRequest(caller.socket, target, events), socket, Buffer.alloc(0))
  return () => void socket.destroy()
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the proxy did not take the request')
}
