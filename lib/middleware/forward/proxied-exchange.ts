import type { Agent, ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type Duplex, PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { RequestHandler as ProxyHandler } from 'http-proxy-middleware'
import type { AttemptRecord } from '../../core/call/index.ts'
import { http } from '../../core/call/node-http.ts'
import { PieceCount } from '../../core/memory/index.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { Exchange } from '../../routing/attempt/exchange.ts'
import { type AttemptEnd, connectionFailure, type Failure } from '../../routing/attempt/failure.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import type { CheckedBody } from './body-checks/body.ts'
import { hasBody } from './relay-headers.ts'
import { readError } from './relayed-answer.ts'

/** Smaller pieces that come in one turn of the event loop are sent together: a write costs more than they do. */
const SENT_ALONE_BYTES = 4096

/** The first response of the line. */
export type Opening =
  | { readonly kind: 'answered'; readonly response: IncomingMessage }
  /** A plain answer to a handshake. `body` resolves to its JSON. */
  | { readonly kind: 'refused'; readonly response: IncomingMessage; readonly body: Promise<unknown> }
  | { readonly kind: 'switched'; readonly response: IncomingMessage; readonly socket: Duplex }
  /** The exchange ended without a response. */
  | { readonly kind: 'ended' }

/**
 * One exchange whose bodies are passed on unread, at the speed of the slower side. The line's clocks for connecting,
 * the first byte and silence apply. The call has a clock for
 * the whole of it. Silence counts only while the line is waited for.
 */
export class ProxiedExchange extends Exchange {
  readonly #caller: IncomingMessage
  readonly #source: Readable
  readonly #watch: CheckedBody['watch']
  readonly #body = new PassThrough()
  readonly #pieces = new PieceCount()
  /** The small pieces of this turn. */
  #turn: Buffer[] = []
  readonly #opening = Promise.withResolvers<Opening>()
  readonly #ended = Promise.withResolvers<AttemptEnd>()
  /** How the exchange ended; undefined while it runs. */
  end: AttemptEnd | undefined
  /** Whether the call handles the end itself: the caller has a head, or gets an error of the gateway. */
  committed = false
  /** The refusal of a piece of the body; the line never gets the whole. */
  refusal: unknown
  #request: ClientRequest | undefined
  /** A socket of the line that nobody relays yet. Once it has switched, the end of its request does not close it. */
  #unrelayed: Duplex | undefined

  /** @param body the body to send, and how it is checked. Defaults to the caller's, unchecked. */
  constructor(
    candidate: Candidate,
    caller: IncomingMessage,
    { source, watch }: Partial<Pick<CheckedBody, 'source' | 'watch'>> = {},
  ) {
    super(
      candidate,
      { ...candidate.line.timeouts, totalMs: Number.POSITIVE_INFINITY },
      Number.POSITIVE_INFINITY,
    )
    this.#caller = caller
    this.#source = source ?? caller
    this.#watch = watch
  }

  /** Sends the request. Never rejects. */
  send(target: UpstreamTarget): Promise<Opening> {
    sendUpstream(this.#caller, target, this, this.#body)
    return this.#opening.promise
  }

  /** Sends a WebSocket handshake. Never rejects. */
  upgrade(target: UpstreamTarget): Promise<Opening> {
    upgradeUpstream(this.#caller, target, this)
    return this.#opening.promise
  }

  /** Whether the whole body has gone to the line. */
  get uploaded(): boolean {
    return this.#body.writableEnded
  }

  /** Whether the line has failed, or has not answered in time. */
  get hasFailed(): boolean {
    return this.end?.kind === 'failed'
  }

  /** Resolves when the exchange has ended. Never rejects. */
  get ended(): Promise<AttemptEnd> {
    return this.#ended.promise
  }

  /** The record for the trace. */
  get record(): AttemptRecord {
    return this.recordOf(this.end ?? { kind: 'abandoned' })
  }

  /** Leaves the end of a switched socket to its relay, which waits for the last bytes. */
  relaying(): void {
    this.#unrelayed = undefined
  }

  /** Ends the exchange because everything was passed on. */
  complete(): void {
    this.#conclude({ kind: 'served' })
  }

  /** Ends the exchange because the caller left. */
  abandon(): void {
    this.#conclude({ kind: 'abandoned' })
  }

  /** Ends the exchange with a failure. Another line may be tried if nothing of the body has been read. */
  breakOff(failure: Failure): void {
    const { committed, connected } = this
    const lineFault = failure.fault !== null
    this.#conclude({ kind: 'failed', failure, committed, elsewhere: !connected, lineFault })
  }

  #conclude(end: AttemptEnd): void {
    if (!this.count(end)) return
    this.noteOver()
    this.end = end
    this.#stopUpload()
    this.#request?.destroy()
    this.#unrelayed?.destroy()
    this.#opening.resolve({ kind: 'ended' })
    this.#ended.resolve(end)
  }

  requested(request: ClientRequest): void {
    this.#request = request
    if (this.end) request.destroy()
    else if (request.socket) this.#watchConnecting(request)
    else request.once('socket', () => this.#watchConnecting(request))
  }

  answered(response: IncomingMessage): void {
    if (this.#noteAnswer(response)) this.#opening.resolve({ kind: 'answered', response })
  }

  refused(response: IncomingMessage): void {
    if (!this.#noteAnswer(response)) return
    this.#opening.resolve({ kind: 'refused', response, body: readError(this, response) })
  }

  switched(response: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => {})
    if (this.end) {
      socket.destroy()
      return
    }
    this.status = 101
    this.noteProgress()
    // A session may be silent for any time.
    this.stopClocks()
    this.#unrelayed = socket
    this.#opening.resolve({ kind: 'switched', response, socket })
  }

  failed(error: Error): void {
    this.breakOff(connectionFailure(error, this.connecting))
  }

  /** Notes the head of an answer. Returns false if the exchange has ended. */
  #noteAnswer(response: IncomingMessage): boolean {
    // The request reports the same error, which is handled there.
    response.on('error', () => {})
    if (this.end) return false
    this.status = response.statusCode ?? 0
    this.resumeClocks()
    this.noteProgress()
    response.on('close', () => {
      if (!response.complete) this.failed(new Error('the answer broke off'))
    })
    return true
  }

  #watchConnecting(request: ClientRequest): void {
    const { socket } = request
    if (socket?.connecting) {
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => this.#connected())
    } else this.#connected()
  }

  #connected(): void {
    if (this.end) return
    this.noteConnected()
    this.#upload()
  }

  /** Starts the upload once connected, so that a failed connection leaves the body for another line. */
  #upload(): void {
    // A body may have ended, with nothing in it, while it was looked at.
    if (!hasBody(this.#caller) || this.#source.readableEnded) {
      this.#body.end()
      return
    }
    this.#waitFor('caller')
    this.#source.on('data', this.#onPiece).on('end', this.#onLastPiece)
    this.#body.on('drain', () => {
      if (this.end) return
      this.#waitFor('caller')
      this.#source.resume()
    })
  }

  readonly #onPiece = (piece: Buffer): void => {
    const refusal = this.#pieces.add(piece.length)
    if (refusal) this.#refuse(refusal)
    else if (piece.length >= SENT_ALONE_BYTES) {
      this.#passTurn()
      this.#pass(piece)
    } else if (this.#turn.push(piece) === 1) setImmediate(() => this.#passTurn())
  }

  #passTurn(): void {
    const pieces = this.#turn
    if (pieces.length === 0) return
    this.#turn = []
    this.#pass(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))
  }

  #pass(bytes: Buffer): void {
    if (!this.#maySend(bytes)) return
    if (this.#body.write(bytes)) return
    this.#source.pause()
    this.#waitFor('line')
  }

  /** Whether a piece, or with null the end, may be sent. */
  #maySend(bytes: Buffer | null): boolean {
    if (this.end) return false
    try {
      this.#watch?.(bytes)
      return true
    } catch (error) {
      this.#refuse(error)
      return false
    }
  }

  #refuse(error: unknown): void {
    this.refusal = error
    this.abandon()
  }

  readonly #onLastPiece = (): void => {
    this.#passTurn()
    if (!this.#maySend(null)) return
    this.#body.end()
    this.#waitFor('line')
  }

  /** Runs the clocks only while the line is waited for. Once its answer has begun, the upload has no influence. */
  #waitFor(side: 'caller' | 'line'): void {
    if (this.status !== null) return
    if (side === 'caller') this.pauseClocks()
    else this.resumeClocks()
  }

  #stopUpload(): void {
    this.#source.off('data', this.#onPiece).off('end', this.#onLastPiece)
    this.#body.destroy()
  }
}

/**
 * Passes an answer's body on as fast as the caller reads, and ends the exchange. The response stays open: its end, or the
 * error that cuts it off, depends on how the exchange ended.
 */
export async function relayAnswer(
  exchange: Pick<
    ProxiedExchange,
    'noteProgress' | 'pauseClocks' | 'resumeClocks' | 'complete' | 'abandon' | 'failed'
  >,
  response: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  response
    .on('data', () => exchange.noteProgress())
    // While it is paused, the caller is waited for, not the line.
    .on('pause', () => exchange.pauseClocks())
    .on('resume', () => exchange.resumeClocks())
  try {
    await pipeline(response, res, { end: false })
    exchange.complete()
  } catch (error) {
    // A caller that has left is not a failure of the line.
    if (res.destroyed) exchange.abandon()
    else exchange.failed(error as Error)
  }
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
  readonly exchange: ProxiedExchange
  readonly body: Readable | undefined

  constructor(socket: Socket, target: UpstreamTarget, exchange: ProxiedExchange, body?: Readable) {
    super(socket)
    this.method = target.method
    this.url = target.path
    this.headers = target.headers
    this.target = target
    this.exchange = exchange
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
        server.on('proxyReq', (request, { exchange }) => exchange.requested(request))
        server.on('proxyRes', (response, { exchange }) => exchange.answered(response))
        server.on('proxyReqWs', (request, { exchange }, socket) => watchUpgrade(request, exchange, socket))
        server.on('error', (error, req) => req?.exchange.failed(error))
        server.on('econnreset', (error, { exchange }) => exchange.failed(error))
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
function watchUpgrade(request: ClientRequest, exchange: ProxiedExchange, unread: Socket): void {
  exchange.requested(request)
  request.on('response', (response) => {
    // The proxy passes nothing on to a socket that is destroyed before its own listener runs.
    unread.destroy()
    exchange.refused(response)
  })
  // The proxy adds its listener right after this event, so ours runs after it. Nothing has flowed by then.
  queueMicrotask(() => {
    request.on('upgrade', (response, socket) => {
      socket.unpipe(unread)
      unread.unpipe(socket)
      exchange.switched(response, socket)
    })
  })
}

/** Sends a request and its body. */
function sendUpstream(
  caller: IncomingMessage,
  target: UpstreamTarget,
  exchange: ProxiedExchange,
  body: Readable,
): void {
  const req = new OutboundRequest(caller.socket, target, exchange, body)
  const failed = (error: unknown): void => exchange.failed(asError(error))
  proxy()
    .then((send) => send(req, new http.ServerResponse(req), failed))
    .catch(failed)
}

/** Sends a WebSocket handshake. */
function upgradeUpstream(caller: IncomingMessage, target: UpstreamTarget, exchange: ProxiedExchange): void {
  const req = new OutboundRequest(caller.socket, target, exchange)
  proxy()
    .then(({ upgrade }) => upgrade(req, new DiscardingSocket(), Buffer.alloc(0)))
    .catch((error: unknown) => exchange.failed(asError(error)))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the proxy did not take the request')
}
