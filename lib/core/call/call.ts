import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseAmount, type Tags } from '../catalog/index.ts'
import { assertFigure } from '../catalog/money.ts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../errors/index.ts'
import { type Protocol, protocolByPath } from '../protocols/index.ts'
import type { BillingTrace, ServedBy } from './billing-trace.ts'
import { type CallTarget, Lifecycle } from './lifecycle.ts'
import { consoleLogger, type Logger } from './logger.ts'
import type {
  CallOutcome,
  CallRequest,
  Finish,
  IdempotencyTrace,
  KeptAnswer,
  LimitRefusal,
  Pin,
  Principal,
  RoutingTrace,
  Usage,
} from './parts.ts'
import { newRequestId } from './request-id.ts'
import { tellUnreadEnvelope } from './unread-envelope.ts'
import { UPGRADE, type Upgrade } from './upgraded.ts'

/** Follows the keys of calls that take long. */
export interface KeyWatch {
  /** Calls `end` with the refusal once the call's key no longer admits it, within 5 s, until the call ends. */
  follow(call: Call, end: (error: GatewayError) => void): void
}

/** Options of {@link openCall}. Each has a default. */
export interface CallOptions {
  /** Returns the inbound protocol of a path. Defaults to {@link protocolByPath}. */
  protocol?: ((path: string) => Protocol) | undefined
  /** Logs faults in the handling of the call. Defaults to the console. */
  logger?: Logger | undefined
}

/**
 * The state of one request. Each middleware writes its own part and reads what earlier ones wrote; they share nothing
 * else. Get it with {@link callOf}.
 */
export class Call extends Lifecycle {
  /** The request id: `req_…`, the same as `X-Request-Id` and `request_id`. */
  readonly id: string
  /** Milliseconds since the epoch; `begunAt` by a monotonic clock, for durations: the other one may be set meanwhile. */
  readonly startedAt: number
  readonly begunAt = performance.now()
  readonly protocol: Protocol
  readonly method: string
  /** The path without the query, as the caller sent it. */
  readonly path: string
  /** The path as logs and traces keep it: at most 500 characters. */
  readonly shortPath: string
  /** The address that Express determines under the app's own `trust proxy` setting. */
  readonly clientIp: string | null
  /** The caller's own `X-Request-Id`. It is logged and never used as the id. */
  readonly clientRequestId: string | null
  readonly logger: Logger

  /** The caller. Like each part of the call, null until a middleware writes it. */
  principal: Principal | null = null
  /** The SHA-256 of the secret that the caller sent, and what follows its key. Written by `authenticate`. */
  secretHash: string | null = null
  keyWatch: KeyWatch | null = null
  /** The model that the caller asked for, whether it exists or not. */
  model: string | null = null
  /** Whom the caller says that the call is for. Written by `readRequest`. */
  user: string | null = null
  /** What the call is for. Written by `authenticate`, and with the tags of the body by `readRequest`. */
  tags: Tags | null = null
  /** The parts of the body that were read. */
  request: CallRequest | null = null
  /** The only line that may serve the call; null if any line may. */
  pin: Pin | null = null
  /**
   * Records what an answer leaves at its line, before its ids are sent. Null if nothing is recorded. Returns undefined
   * if there is nothing to wait for.
   */
  keepAnswer: ((answer: KeptAnswer) => Promise<void> | undefined) | null = null
  /** The removed lines with the reasons, and the attempts. */
  routing: RoutingTrace | null = null
  /** The number of the next event, in a stream whose events are numbered. Written by `route`. */
  nextEventNumber: number | undefined
  /** The usage that the line reported. Written by `route`. */
  usage: Usage | null = null
  servedBy: ServedBy | null = null
  /** What was held and charged, in nano-units. */
  billing: BillingTrace | null = null
  /** How the call ended; null while it runs. */
  outcome: CallOutcome | null = null
  /** The limit that refused the call. */
  limit: LimitRefusal | null = null
  idempotency: IdempotencyTrace | null = null
  /** The error that {@link refuse} made last. */
  refusal: GatewayError | null = null
  /**
   * Who writes the log entry of a settled call: the log's own `writer`, or the `ledger`, which then sets `written`.
   * Null without a call log.
   */
  entryBy: 'writer' | 'ledger' | 'written' | null = null

  /** The response; undefined if the call answers on a socket. */
  readonly #response: ServerResponse | undefined
  #failListeners: (() => void)[] | undefined
  #failed = false

  constructor(req: IncomingMessage, target: CallTarget, options: CallOptions = {}) {
    super(target)
    this.startedAt = Date.now()
    this.id = newRequestId(this.startedAt)
    this.method = req.method ?? 'GET'
    this.path = pathOf(req)
    this.shortPath = this.path.slice(0, 500)
    this.protocol = (options.protocol ?? protocolByPath)(this.path)
    this.clientIp = clientIpOf(req)
    const given = req.headers['x-request-id']
    this.clientRequestId = typeof given === 'string' && given !== '' ? printable(given) : null
    this.logger = options.logger ?? consoleLogger
    this.#response = 'setHeader' in target ? target : undefined
    if (this.#response?.headersSent === false) {
      const { requestIdHeaders: names } = this.protocol
      for (let i = 0; i < names.length; i++) this.#response.setHeader(names[i] as string, this.id)
    }
  }

  /**
   * Charges the call for what your own handler did. Several charges add up. They are written when the answer ends, if
   * it is a success or a part of it was sent.
   *
   * @param amount a decimal string in units of the currency, or a bigint of nano-units; not negative.
   * @throws TypeError if the amount is a number, `billingGuard` is not mounted before the handler, or the call has been settled.
   * @throws RangeError if the amount is not valid.
   * @example
   * app.post('/maps', billingGuard({ pool, reserve: () => '0.02' }), (req, res) => {
   *   callOf(req).charge('0.015')
   *   res.json(drawMap(req.body))
   * })
   */
  charge(amount: bigint | string): void {
    const nanos = typeof amount === 'string' ? parseAmount(amount) : amount
    if (typeof nanos !== 'bigint')
      throw new TypeError('charge: it must be a decimal string, such as "0.015", or a bigint of nano-units')
    if (nanos < 0n) throw new RangeError(`charge: ${amount} is negative`)
    if (!this.billing) throw new TypeError('charge: mount billingGuard before the handler that charges')
    if (this.billing.charged !== null) throw new TypeError('charge: the call has been settled already')
    this.billing.own = assertFigure((this.billing.own ?? 0n) + nanos, 'charge: the sum')
  }

  /**
   * Creates the error that refuses this call. It has the request id as a header, so that it is right in an app without
   * `errorEnvelope`, too.
   *
   * @example
   * throw call.refuse('key_expired')
   */
  refuse(code: ErrorCode, options?: GatewayErrorOptions): GatewayError {
    this.refusal = this.stamp(new GatewayError(code, options))
    return this.refusal
  }

  /** Adds the request id headers of this call to an error. */
  stamp(error: GatewayError): GatewayError {
    for (const name of this.protocol.requestIdHeaders) error.headers[name] = this.id
    return error
  }

  /** Registers a listener for each error of this call that is written as an answer, also after the end of the call. */
  onFail(listener: () => void): void {
    if (this.#failed) listener()
    if (this.#failListeners) this.#failListeners.push(listener)
    else this.#failListeners = [listener]
  }

  /** Records how the call failed; the first failure counts. Called when an error is written as an answer. */
  fail(error: GatewayError): void {
    this.#failed = true
    this.#noteFailure(error)
    if (this.#failListeners) for (const listener of this.#failListeners) listener()
  }

  #noteFailure(error: GatewayError): void {
    if (this.outcome) return
    const response = this.#response
    const sent = response?.headersSent === true
    const interrupted = sent || error.code === 'client_closed_request'
    const tried = this.routing !== null && this.routing.attempts.length > 0
    const failed = tried || error.code === 'internal_error'
    const finish: Finish = interrupted ? 'interrupted' : failed ? 'failed' : 'refused'
    this.outcome = { status: sent ? response.statusCode : error.status, errorCode: error.code, finish }
  }

  protected fault(error: unknown, name: string): void {
    this.logger.error({ err: error, requestId: this.id, name }, 'a function of onEnd failed')
  }

  protected conclude(whole: boolean): void {
    if (this.outcome) return
    const status = this.#response?.statusCode ?? 101
    if (this.refusal !== null && this.#response !== undefined && whole)
      tellUnreadEnvelope(this.#response, this.path, this.id, this.logger)
    this.outcome = whole
      ? { status, errorCode: null, finish: status < 400 ? 'completed' : 'refused' }
      : { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
  }
}

/** Of the whole process: two copies of this package share the call of a request. */
const CALL = Symbol.for('express-model-gateway call')

/** On a request whose call something asked for before it was opened. */
export const UNASKED = Symbol('a call that nobody had opened')

/** A request, with the mark of a call that nobody had opened. */
export type Unasked = IncomingMessage & { [UNASKED]?: true }

type CallCarrier = IncomingMessage & { [CALL]?: Call; [UPGRADE]?: Upgrade; res?: ServerResponse }

/**
 * Opens the call of a request. If the request has a call already, that one is returned.
 *
 * @param target the response, or the socket of an upgraded connection. A request that `noteUpgrade` noted answers on
 *   its socket in any case.
 * @example
 * const call = openCall(req, res, { logger: pino() })
 * console.log(call.id)
 */
export function openCall(req: IncomingMessage, target: CallTarget, options?: CallOptions): Call {
  const carrier = req as CallCarrier
  carrier[CALL] ??= new Call(req, carrier[UPGRADE]?.socket ?? target, options)
  return carrier[CALL]
}

/**
 * Returns the call of a request. It is opened with defaults if `beginCall` is not mounted, so that each middleware
 * works alone.
 *
 * @throws TypeError if the request is not one of Express: then it has no response.
 * @example
 * app.post('/chat', authenticate({ keys }), (req, res) => res.json({ account: callOf(req).principal?.accountId }))
 */
export function callOf(req: IncomingMessage): Call {
  const carrier = req as CallCarrier
  if (carrier[CALL]) return carrier[CALL]
  if (!carrier.res)
    throw new TypeError('callOf(req) needs a request of an Express app, or openCall(req, res) before it')
  ;(req as Unasked)[UNASKED] = true
  return openCall(req, carrier.res)
}

/** Path without the query, as the caller sent it. */
function pathOf(req: IncomingMessage): string {
  const url = (req as { originalUrl?: string }).originalUrl ?? req.url ?? '/'
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** The longest address, with a zone. What a proxy sends may be any text. */
const MAX_IP_LENGTH = 64

/** Returns the caller's address. An IPv4 address on an IPv6 socket is returned as IPv4. */
function clientIpOf(req: IncomingMessage): string | null {
  const { app } = req as { app?: { enabled?(setting: string): boolean } }
  // Express computes req.ip at each access, even if no proxy is trusted and the result is the socket's address.
  const trusting = app?.enabled?.('trust proxy') ?? false
  const ip = (trusting ? (req as { ip?: string }).ip : undefined) ?? req.socket.remoteAddress ?? null
  if (ip === null || (trusting && ip.length > MAX_IP_LENGTH)) return null
  return ip.startsWith('::ffff:') && ip.includes('.') ? ip.slice(7) : ip
}

/** Returns a text of the caller, shortened and printable, because it is logged. */
function printable(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
