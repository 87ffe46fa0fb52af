import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../../core/call/index.ts'
import { http } from '../../core/call/node-http.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { continueOnRead } from './continue-on-read.ts'
import { requireApp, responseOn } from './upgrade-handler.ts'

/** Listeners for the events by which an HTTP server lets others refuse what it would refuse itself, without an envelope. */
export interface ServerRefusals {
  /** For `server.on('request', …)`, of a server with `requireHostHeader: false`: HTTP/1.1 demands a `Host`. */
  request(req: IncomingMessage, res: ServerResponse): void
  /** For `server.on('clientError', …)`: requests that cannot be parsed, or that do not come in time. */
  clientError(error: NodeJS.ErrnoException & { rawPacket?: unknown }, socket: Duplex): void
  /**
   * For `server.on('checkContinue', …)`: requests with `Expect: 100-continue`. They are requests like any other, whose 100
   * is sent when their body is first read.
   */
  checkContinue(this: Server, req: IncomingMessage, res: ServerResponse): void
  /** For `server.on('checkExpectation', …)`: requests with an `Expect` other than `100-continue`. */
  checkExpectation(req: IncomingMessage, res: ServerResponse): void
  /** For `server.on('connect', …)`: requests for a tunnel. */
  connect(req: IncomingMessage, socket: Duplex): void
}

const refusals = new WeakMap<IncomingMessage, GatewayError>()

/** The last request of a connection. */
interface LastRequest {
  /** Its answer; undefined once that has been given. */
  res: ServerResponse | undefined
  /** Whether the answer was given before the whole request had come. */
  isCutShort: boolean
  /** The listener for the end of an answer. */
  readonly onClose: (this: ServerResponse) => void
}

function noRequest(): LastRequest {
  const last: LastRequest = {
    res: undefined,
    isCutShort: false,
    onClose() {
      if (last.res !== this) return
      last.res = undefined
      last.isCutShort = !this.req.complete
    },
  }
  return last
}

/**
 * Refuses a request that {@link serverRefusals} passes on, and no other. Mount it behind `beginCall` and `callLog` and in
 * front of `errorEnvelope`.
 */
export function refuseUnparsed(): RequestHandler {
  return function refuseUnparsed(req: Request, _res: Response, next: NextFunction): void {
    next(refusals.get(req))
  }
}

/**
 * Passes on to an app what Node's HTTP server would refuse itself: broken requests (400), headers that are too large (431)
 * or late (408), unknown expectations (417) and tunnels. Then these refusals, too, have an envelope, a request id and an
 * entry in the call log. Where the body of a request breaks or does not come in time, its call is ended with the refusal.
 * Nothing is written to a caller that has closed its connection, or into an answer that has begun. Callers that wait for a
 * 100 get it when their body is first read: who is refused before that need not send it.
 *
 * @param app serves all other requests.
 * @param refused a chain for these only, with {@link refuseUnparsed}.
 * @throws TypeError if one of them cannot serve requests.
 * @example
 * const refused = express().use(beginCall(), callLog({ writer }), refuseUnparsed(), errorEnvelope())
 * const server = createServer({ requireHostHeader: false })
 * for (const [event, listener] of Object.entries(serverRefusals(app, refused))) server.on(event, listener)
 */
export function serverRefusals(app: RequestListener, refused: RequestListener): ServerRefusals {
  requireApp('serverRefusals', app)
  requireApp('serverRefusals', refused)
  const connections = new WeakMap<Duplex, LastRequest>()
  function note(req: IncomingMessage, res: ServerResponse): void {
    let last = connections.get(req.socket)
    if (last === undefined) {
      last = noRequest()
      connections.set(req.socket, last)
    }
    last.res = res
    last.isCutShort = false
    res.on('close', last.onClose)
  }
  function pass(error: GatewayError, req: IncomingMessage, res: ServerResponse): void {
    refusals.set(req, error)
    refused(req, res)
  }
  function passOn(socket: Socket, error: GatewayError, req: IncomingMessage): void {
    const res = responseOn(socket, req)
    if (res) pass(error, req, res)
  }
  return {
    request(req, res) {
      note(req, res)
      if (req.headers.host !== undefined || req.httpVersion !== '1.1') app(req, res)
      else {
        res.shouldKeepAlive = false
        pass(new GatewayError('invalid_request', { message: NO_HOST }), req, res)
      }
    },
    clientError(fault, socket) {
      const last = connections.get(socket)
      if (!(socket instanceof Socket) || isClosed(fault, socket) || last?.isCutShort) socket.destroy()
      else if (last?.res === undefined) {
        const req = requestOf(socket, fault.rawPacket)
        passOn(socket, refusalOf(fault.code), req)
      } else if (last.res.req.complete) {
        // The request is complete, and the bytes behind it are broken: its call ends as one whose caller has left.
        socket.destroy()
      } else callOf(last.res.req).abort(refusalOf(fault.code))
    },
    checkContinue(req, res) {
      continueOnRead(req, res)
      this.emit('request', req, res)
    },
    checkExpectation(req, res) {
      note(req, res)
      res.shouldKeepAlive = false
      pass(new GatewayError('invalid_request', { status: 417, message: NOT_EXPECTED }), req, res)
    },
    connect(req, socket) {
      // It names a host in place of a path.
      req.url = '/'
      if (socket instanceof Socket) passOn(socket, new GatewayError('not_found', { message: NO_TUNNEL }), req)
      else socket.destroy()
    },
  }
}

const NO_HOST = 'The request has no header Host. Send it with the name of the server.'
const NOT_EXPECTED =
  'What the request expects is not supported. Send it without Expect, or with "100-continue".'
const NO_TUNNEL = 'There are no tunnels here. Send the request to a path of this service.'
const TOO_LARGE = 'The headers of the request are too large. Send fewer and shorter ones, and a shorter path.'
const TOO_LATE = 'The request was not complete in time. Send it again, faster.'
const BROKEN = 'The request is not valid HTTP. Check its request line, its headers and its framing.'

/** A new error for each request, because its headers hold the request id. */
function refusalOf(code: string | undefined): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError('invalid_request', { status: 431, message: TOO_LARGE })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('invalid_request', { status: 408, message: TOO_LATE, shouldRetry: true })
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new GatewayError('request_too_large')
    default:
      return new GatewayError('invalid_request', { message: BROKEN })
  }
}

/**
 * Whether a connection was closed by its caller, in the middle of a request too, or has sent nothing and so asked for
 * nothing.
 */
function isClosed({ code }: NodeJS.ErrnoException, socket: Socket): boolean {
  return (
    code === 'HPE_INVALID_EOF_STATE' || code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0
  )
}

const REQUEST_LINE = /^([A-Z-]{3,20}) (\/[^\s?]{0,500})/

/** Makes a request of what is known of it: method and path, if the packet that could not be parsed begins with them. */
function requestOf(socket: Socket, packet: unknown): IncomingMessage {
  const begin = packet instanceof Uint8Array ? Buffer.from(packet.subarray(0, 600)).toString('latin1') : ''
  const [, method = '', path = '/'] = REQUEST_LINE.exec(begin) ?? []
  const req = new http.IncomingMessage(socket)
  req.method = http.METHODS.includes(method) ? method : 'GET'
  req.url = path
  req.httpVersionMajor = 1
  req.httpVersionMinor = 1
  req.complete = true
  return req
}
