import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Request } from 'express'
import { parseAmount, type Tags } from '../catalog/index.ts'
import { assertFigure } from '../catalog/money.ts'
import { clientAddress } from '../client-address/index.ts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../errors/index.ts'
import type { Operation } from '../operations/index.ts'
import { type Protocol, protocolByPath } from '../protocols/index.ts'
import type { AnswerFilter, GuardTrace } from './answer-filter.ts'
import type { BillingTrace, ServedBy } from './billing-trace.ts'
import type { Call, KeyWatch, Settler } from './call.ts'
import { isHeldBack, LAST_BYTES } from './held-answer.ts'
import { consoleLogger, type Logger } from './logger.ts'
import type {
  CacheTrace,
  CallEnding,
  CallLimits,
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
import { warnOfUnusedEnvelope } from './unused-envelope.ts'
import { UPGRADE, type Upgrade } from './upgraded.ts'
import { writeRefusal } from './write-refusal.ts'

/** A middleware that can refuse a call before its body is read. */
export interface EarlyRefuser {
  /**
   * Returns the error that refuses the call whatever its body is, going by what this process knows already; undefined
   * if that depends on the body. Takes nothing of any limit or balance.
   */
  refuseEarly(
    req: Request,
    call: Call,
    operation: Operation,
  ): GatewayError | undefined | Promise<GatewayError | undefined>
}

/** When a call was made durable. Times are milliseconds since the epoch. */
interface SettlingTrace {
  readonly startedAt: number
  /** null until it is done. */
  endedAt: number | null
}

/** Releases what a call has acquired. */
type EndListener = (call: OpenCall) => void | Promise<void>

/** The object that a call answers on: a response, or the socket of an upgraded connection. */
type CallTarget = ServerResponse | Duplex

/** Options of {@link openCall}. Each has a default. */
export interface CallOptions {
  /** Returns the inbound protocol of a path. Defaults to {@link protocolByPath}. */
  protocol?: ((path: string) => Protocol) | undefined
  /** Logs faults in the handling of the call. Defaults to the console. */
  logger?: Logger | undefined
}

/** A {@link Call} as our own middlewares share it. The members of a {@link Call} are described there. */
export class OpenCall implements Call {
  readonly id: string
  readonly startedAt: number
  /** The same by a monotonic clock, for durations: the other one may be set meanwhile. */
  readonly begunAt = performance.now()
  readonly protocol: Protocol
  readonly method: string
  readonly path: string
  /** The path as logs and traces keep it: at most 500 characters. */
  readonly shortPath: string
  readonly clientIp: string | null
  readonly clientRequestId: string | null
  readonly logger: Logger
  /** Whether a middleware asked for the call before `beginCall` had opened it. */
  isImplicit = false

  principal: Principal | null = null
  /** The SHA-256 of the secret that the caller sent. Written by `authenticate`. */
  secretHash: string | null = null
  keyWatch: KeyWatch | null = null
  model: string | null = null
  /** Written by `readRequest`. */
  user: string | null = null
  /** Written by `authenticate`, and with those of the body by `readRequest`. */
  tags: Tags | null = null
  request: CallRequest | null = null
  /** The only line that may serve the call; null if any line may. */
  pin: Pin | null = null
  /**
   * Records what an answer leaves at its line, before its ids are sent. Null if nothing is recorded. Returns undefined
   * if there is nothing to wait for.
   */
  keepAnswer: ((answer: KeptAnswer) => Promise<void> | undefined) | null = null
  routing: RoutingTrace | null = null
  /** The number of the next event, in a stream whose events are numbered. Written by `route`. */
  nextEventNumber: number | undefined
  /** Written by `route`. */
  usage: Usage | null = null
  servedBy: ServedBy | null = null
  billing: BillingTrace | null = null
  outcome: CallOutcome | null = null
  /** Written by `rateLimit`. */
  limits: CallLimits | null = null
  limit: LimitRefusal | null = null
  idempotency: IdempotencyTrace | null = null
  /** The filters that check the answer before the caller gets it. Written by `guard`. */
  readonly answerFilters: AnswerFilter[] = []
  /** Set by `route`, which passes its answers through the filters itself. */
  filtersAnswer = false
  /** Written by `guard`. */
  readonly guards: GuardTrace[] = []
  /** Written by `cache`. */
  cache: CacheTrace | null = null
  /** The error that {@link refuse} made last. */
  refusal: GatewayError | null = null
  /**
   * The writer of a settled call's log entry: the log's own `writer`, or the `ledger`, which then sets `written`.
   * Null without a call log.
   */
  entryBy: 'writer' | 'ledger' | 'written' | null = null

  /** When the call was made durable; null if nothing had to be. */
  settling: SettlingTrace | null = null
  ended = false
  left = false

  readonly #target: CallTarget
  /** The response; undefined if the call answers on a socket. */
  readonly #response: ServerResponse | undefined
  /** The response to an upgrade that is not accepted; undefined for any other call. */
  readonly #unswitched: ServerResponse | undefined
  readonly #failListeners: (() => void)[] = []
  #leaveListeners: (() => void)[] = []
  readonly #endListeners: { readonly name: string; readonly run: EndListener }[] = []
  #settlers: Settler[] = []
  readonly #claimChecks: (() => void)[] = []
  #lastByteWork: (() => Promise<void> | undefined)[] = []
  #lastByteReady: Promise<void> | undefined
  #holds = 0
  #failed = false
  #closed = false

  constructor(
    req: IncomingMessage,
    target: CallTarget,
    options: CallOptions = {},
    unswitched?: ServerResponse,
  ) {
    this.#target = target
    this.startedAt = Date.now()
    this.id = newRequestId(this.startedAt)
    this.method = req.method ?? 'GET'
    this.path = pathOf(req)
    this.shortPath = this.path.slice(0, 500)
    this.protocol = (options.protocol ?? protocolByPath)(this.path)
    const given = req.headers['x-request-id']
    this.clientRequestId = typeof given === 'string' && given !== '' ? printable(given) : null
    this.logger = options.logger ?? consoleLogger
    this.clientIp = clientIpOf(req, this.logger)
    this.#response = 'setHeader' in target ? target : undefined
    this.#unswitched = unswitched
    const plain = this.#response ?? unswitched
    if (plain?.headersSent === false) {
      for (const name of this.protocol.requestIdHeaders) plain.setHeader(name, this.id)
    }
    if (target.destroyed) queueMicrotask(() => this.#close())
    else target.on('close', () => this.#close())
    // Node removes its error listener from an upgraded socket: a reset would end the process. `close` follows the error.
    if (this.#response === undefined) target.on('error', () => {})
  }

  charge(amount: bigint | string): void {
    const nanos = typeof amount === 'string' ? parseAmount(amount) : amount
    if (typeof nanos !== 'bigint')
      throw new TypeError('charge: it must be a decimal string, such as "0.015", or a bigint of nano-units')
    if (nanos < 0n) throw new RangeError(`charge: ${amount} is negative`)
    if (!this.billing) throw new TypeError('charge: mount billingGuard before the handler that charges')
    if (this.billing.charged !== null) throw new TypeError('charge: the call has been settled already')
    this.billing.own = assertFigure((this.billing.own ?? 0n) + nanos, 'charge: the sum')
  }

  refuse(code: ErrorCode, options?: GatewayErrorOptions): GatewayError {
    this.refusal = this.stamp(new GatewayError(code, options))
    return this.refusal
  }

  /** Adds the request id headers of this call to an error of the gateway. Returns what was thrown. */
  stamp<Thrown>(thrown: Thrown): Thrown {
    if (thrown instanceof GatewayError)
      for (const name of this.protocol.requestIdHeaders) thrown.headers[name] = this.id
    return thrown
  }

  onFail(listener: () => void): void {
    if (this.#failed) this.#run('onFail', listener)
    this.#failListeners.push(listener)
  }

  /** Records how the call failed; the first failure counts. Called when an error is written as an answer. */
  fail(error: GatewayError): void {
    this.#failed = true
    this.#noteFailure(error)
    for (const listener of this.#failListeners) this.#run('onFail', listener)
  }

  abort(error: GatewayError): void {
    const response = this.#response
    if (response === undefined || response.writableFinished || this.left || this.ended) return
    // The answer was complete, and only its end is held back, so it stands.
    if (isHeldBack(response)) return
    if (response.headersSent) {
      this.fail(error)
      response.req.socket.destroy()
    } else {
      // Behind an answer, Node closes no request that has not come whole, and its reader would wait.
      response.on('close', () => response.req.destroy())
      writeRefusal(response, this, error)
    }
    this.#leave()
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

  onSettle(run: Settler): void {
    this.#settlers.push(run)
  }

  settle(ending: CallEnding): Promise<void> | undefined {
    const settlers = this.#settlers
    if (settlers.length === 0) return undefined
    this.#settlers = []
    // The settlement and what has to happen before the last byte are waited for together.
    if (ending.unsent !== null && ending.unsent.length <= LAST_BYTES) void this.prepareLastByte()
    return this.#settleAll(settlers, ending)
  }

  async #settleAll(settlers: readonly Settler[], ending: CallEnding): Promise<void> {
    const trace: SettlingTrace = { startedAt: Date.now(), endedAt: null }
    this.settling = trace
    try {
      for (const settler of settlers) {
        const waiting = settler(ending)
        if (waiting) await waiting
      }
    } finally {
      trace.endedAt = Date.now()
    }
  }

  /** Registers work that must be done before the caller can have read the last byte. It must not reject. */
  onLastByte(run: () => Promise<void> | undefined): void {
    this.#lastByteWork.push(run)
  }

  /** Does that work, once, before a last byte goes out. Returns undefined if there is nothing to wait for. */
  prepareLastByte(): Promise<void> | undefined {
    const work = this.#lastByteWork
    if (work.length === 0) return this.#lastByteReady
    this.#lastByteWork = []
    const running = work.flatMap((run) => run() ?? [])
    this.#lastByteReady = running.length > 0 ? Promise.all(running).then(() => {}) : undefined
    return this.#lastByteReady
  }

  /** Registers a check that throws if another call may have the claim of this one. */
  onAssertOwnsClaim(check: () => void): void {
    this.#claimChecks.push(check)
  }

  /**
   * Asserts that no other call has the claim of this one. Called before each attempt and before the last byte.
   *
   * @throws the error of a check; nothing more may be sent then.
   */
  assertOwnsClaim(): void {
    for (const check of this.#claimChecks) check()
  }

  onEnd(name: string, run: EndListener): void {
    if (this.ended) this.#run(name, run)
    else this.#endListeners.push({ name, run })
  }

  onLeave(listener: () => void): void {
    if (this.left) listener()
    else this.#leaveListeners.push(listener)
  }

  offLeave(listener: () => void): void {
    this.#leaveListeners = this.#leaveListeners.filter((each) => each !== listener)
  }

  hold(): () => void {
    this.#holds++
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#holds--
      this.#endIfDone()
    }
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    if (!this.#target.writableFinished) this.#leave()
    this.#endIfDone()
  }

  #leave(): void {
    this.left = true
    const listeners = this.#leaveListeners
    this.#leaveListeners = []
    for (const listener of listeners) this.#run('onLeave', listener)
  }

  #endIfDone(): void {
    if (!this.#closed || this.#holds > 0 || this.ended) return
    this.ended = true
    this.#leaveListeners = []
    this.#noteOutcome(this.#target.writableFinished)
    for (let next = this.#endListeners.pop(); next; next = this.#endListeners.pop())
      this.#run(next.name, next.run)
  }

  /** @param whole whether the whole answer was handed over. */
  #noteOutcome(whole: boolean): void {
    if (this.outcome) return
    const plain = this.#response ?? (this.#unswitched?.headersSent ? this.#unswitched : undefined)
    const status = plain?.statusCode ?? 101
    if (this.refusal !== null && this.#response !== undefined && whole)
      warnOfUnusedEnvelope(this.#response, this.path, this.id, this.logger)
    this.outcome = whole
      ? { status, errorCode: null, finish: status < 400 ? 'completed' : 'refused' }
      : { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
  }

  /** Runs one function. Its failure does not stop the others. */
  #run(name: string, run: EndListener): void {
    try {
      void run(this)?.catch((error) => this.#logFailure(name, error))
    } catch (error) {
      this.#logFailure(name, error)
    }
  }

  #logFailure(name: string, error: unknown): void {
    this.logger.error({ err: error, requestId: this.id, name }, 'a function of onEnd failed')
  }
}

/** Of the whole process: two copies of this package share the call of a request. */
const CALL = Symbol.for('express-model-gateway call')

type CallCarrier = IncomingMessage & { [CALL]?: OpenCall; [UPGRADE]?: Upgrade; res?: ServerResponse }

/**
 * Opens the call of a request. If the request has a call already, that one is returned.
 *
 * @param target the response, or the socket of an upgraded connection. A request that `noteUpgrade` noted answers on
 *   its socket in any case.
 * @example
 * const call = openCall(req, res, { logger: pino() })
 * console.log(call.id)
 */
export function openCall(req: IncomingMessage, target: CallTarget, options?: CallOptions): OpenCall {
  const carrier = req as CallCarrier
  const socket = carrier[UPGRADE]?.socket
  const unswitched = socket && 'setHeader' in target ? target : undefined
  carrier[CALL] ??= new OpenCall(req, socket ?? target, options, unswitched)
  return carrier[CALL]
}

/**
 * Returns the call of a request, with all that middlewares need of it. Apps get the same object as a `Call`, from `public.ts`.
 *
 * @throws TypeError if the request is not one of Express: then it has no response.
 */
export function callOf(req: IncomingMessage): OpenCall {
  const carrier = req as CallCarrier
  if (carrier[CALL]) return carrier[CALL]
  if (!carrier.res)
    throw new TypeError('callOf(req) needs a request of an Express app, or openCall(req, res) before it')
  const call = openCall(req, carrier.res)
  call.isImplicit = true
  return call
}

/** Returns the call of a request; undefined if it has not been opened. */
export function openedCallOf(req: IncomingMessage): OpenCall | undefined {
  return (req as CallCarrier)[CALL]
}

/** The scheme and the host, which clients of proxies send before the path. */
const BEFORE_PATH = /^[a-z][a-z0-9+.-]*:\/\/[^/]*\/?/i

/** Path without the query, as the caller sent it. */
function pathOf(req: IncomingMessage): string {
  const url = (req as { originalUrl?: string }).originalUrl ?? req.url ?? '/'
  const query = url.indexOf('?')
  const target = query < 0 ? url : url.slice(0, query)
  return target.replace(BEFORE_PATH, '/')
}

let reportedUnusable = false

/**
 * Returns the caller's address, null if there is none. Where the app trusts a proxy, the proxy has named it, and may have
 * sent any text. A text that is not an address is reported once.
 */
function clientIpOf(req: IncomingMessage, logger: Logger): string | null {
  const { app } = req as { app?: { enabled?(setting: string): boolean } }
  // Express computes req.ip at each access, even if no proxy is trusted and the result is the socket's address.
  const trusting = app?.enabled?.('trust proxy') ?? false
  const ip = (trusting ? (req as { ip?: string }).ip : undefined) ?? req.socket.remoteAddress
  if (ip === undefined) return null
  const address = clientAddress(ip)
  if (address === undefined && !reportedUnusable) {
    reportedUnusable = true
    logger.warn(
      { address: printable(ip) },
      'a trusted proxy sends X-Forwarded-For with a text that is not an address: its callers count as one, and keys with an allow-list refuse them',
    )
  }
  return address ?? null
}

/** Returns a text of the caller, shortened and printable, because it is logged. */
function printable(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
