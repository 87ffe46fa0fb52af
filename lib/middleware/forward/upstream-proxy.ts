import type { Agent, ClientRequest, ClientRequestArgs, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import type { RequestHandler as ProxyHandler } from 'http-proxy-middleware'
import { http } from '../../core/call/node-http.ts'
import type { Line } from '../../core/catalog/index.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { connectorOf, tlsOptions } from '../../routing/lines/line-connect.ts'
import { loadUndici } from '../../routing/lines/upstream-pool.ts'

/** Events of one exchange. They may come after the exchange has ended. */
export interface UpstreamEvents {
  /** Called when the request exists; its socket may still be connecting. */
  requested(request: ClientRequest): void
  answered(response: IncomingMessage): void
  /** Called when the line answers a handshake without switching protocols. */
  refused(response: IncomingMessage): void
  switched(response: IncomingMessage, socket: Duplex): void
  failed(error: Error): void
}

/** The request to a line. */
export interface UpstreamTarget {
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  readonly method: string
  /** The headers that come from the caller. */
  readonly headers: Record<string, string>
  /** The headers that the gateway adds, with the credentials. They take precedence. */
  readonly lineHeaders: Record<string, string>
  /** Opens the connections to a line with a proxy or certificates of its own; undefined for all others. */
  readonly agent: Agent | undefined
}

/**
 * The request object given to the proxy. It is not the caller's, for two reasons:
 *
 * - The proxy copies every header of its request, and no option removes one: `headers` only adds, and `proxyReq`,
 * where they could be removed, is not emitted for a request with `Expect`. The caller's key would leak.
 * - The proxy destroys its response when the upstream breaks off, even with `selfHandleResponse`, before an error
 * could be sent.
 */
class OutboundRequest extends http.IncomingMessage {
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
 * The socket given to the proxy for an upgrade. It discards what is written: the proxy writes the head of the
 * upstream's answer unchanged, with cookies and request ids, and `selfHandleResponse` does not cover upgrades.
 */
class DiscardingSocket extends Socket {
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done()
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done()
  }
}

/**
 * http-proxy-middleware sends the request, with the gateway's headers over the caller's, and the body as fast as the
 * upstream takes it. It neither answers nor upgrades by itself.
 */
async function createProxy(): Promise<ProxyHandler<OutboundRequest, ServerResponse>> {
  const { createProxyMiddleware } = await import('http-proxy-middleware')
  const https = await import('node:https')
  // A connection for each exchange: a kept-alive one may be dead, and a partly sent body cannot be sent again.
  const options = { keepAlive: false, lookup: lookupAny }
  const plainAgent = new http.Agent(options)
  const tlsAgent = new https.Agent(options)
  return createProxyMiddleware<OutboundRequest, ServerResponse>({
    ws: false,
    selfHandleResponse: true,
    followRedirects: false,
    pathFilter: () => true,
    router: ({ target, body }, _res, options) => {
      // Not in `proxyReq`, which is not emitted for a request with "Expect".
      options.headers = target.lineHeaders
      options.agent = target.agent ?? (target.origin.startsWith('https:') ? tlsAgent : plainAgent)
      if (body) options.buffer = body
      return target.origin
    },
    // The default plugins answer errors themselves; without them there is no `on` option either.
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
}

let created: ProxyHandler<OutboundRequest, ServerResponse> | undefined

/** Returns the proxy. Its package is loaded with the first request: most apps never pass one on. */
async function proxy(): Promise<ProxyHandler<OutboundRequest, ServerResponse>> {
  created ??= await createProxy()
  return created
}

/** Reports the result of a handshake. The proxy pipes the two sockets together, and they are separated at once. */
function watchUpgrade(request: ClientRequest, events: UpstreamEvents, unread: Socket): void {
  events.requested(request)
  request.on('response', (response) => {
    // The proxy passes nothing on to a socket that is destroyed before its own listener runs.
    unread.destroy()
    events.refused(response)
  })
  // The proxy adds its listener right after this event, so ours runs after it. Nothing has flowed by then.
  queueMicrotask(() => {
    request.on('upgrade', (response, socket) => {
      socket.unpipe(unread)
      unread.unpipe(socket)
      events.switched(response, socket)
    })
  })
}

/** Sends a request and its body. */
export function sendUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
  body: Readable,
): void {
  const req = new OutboundRequest(caller.socket, target, events, body)
  const failed = (error: unknown): void => events.failed(asError(error))
  proxy()
    .then((send) => send(req, new http.ServerResponse(req), failed))
    .catch(failed)
}

/** Sends a WebSocket handshake. */
export function upgradeUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  events: UpstreamEvents,
): void {
  const req = new OutboundRequest(caller.socket, target, events)
  proxy()
    .then(({ upgrade }) => upgrade(req, new DiscardingSocket(), Buffer.alloc(0)))
    .catch((error: unknown) => events.failed(asError(error)))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the proxy did not take the request')
}

const agents = new WeakMap<Line, Agent>()

/** Returns the agent of a line that has a proxy or certificates of its own; undefined for all others. */
export function agentOf(line: Line): Agent | undefined {
  if (line.proxy === undefined && line.tls === undefined) return undefined
  const known = agents.get(line)
  if (known) return known
  const isTls = line.origin.startsWith('https:')
  const Base = isTls ? process.getBuiltinModule('node:https').Agent : http.Agent
  const ForLine = line.proxy === undefined ? Base : throughProxy(Base, line)
  const agent = new ForLine({ keepAlive: false, lookup: lookupAny, ...(isTls && tlsOptions(line)) })
  agents.set(line, agent)
  return agent
}

/** Returns a class of agents that give each request a connection through the proxy, once it is open: an upload must not begin before. */
function throughProxy(Base: typeof Agent, line: Line): typeof Agent {
  const { hostname, host, port, protocol } = new URL(line.origin)
  const loaded = loadUndici().then(({ buildConnector }) => connectorOf(line, buildConnector))
  return class extends Base {
    override createConnection(
      options: ClientRequestArgs,
      done?: (error: Error | null, socket: Duplex) => void,
    ): undefined {
      const { servername } = options as { servername?: string }
      const target = { hostname, host, port, protocol, ...(servername && { servername }) }
      const connected = (error: Error | null, socket: Duplex | null): void => done?.(error, socket as Duplex)
      loaded.then((connect) => connect(target, connected)).catch((error: Error) => connected(error, null))
      return undefined
    }
  }
}
