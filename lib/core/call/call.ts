import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseAmount } from '../catalog/index.ts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../errors/index.ts'
import { type Protocol, protocolByPath } from '../protocols/index.ts'
import type { BillingTrace, ServedBy } from './billing-trace.ts'
import { clientIpOf, clientRequestIdOf, pathOf } from './inbound-request.ts'
import { type CallTarget, Lifecycle } from './lifecycle.ts'
import { consoleLogger, type Logger } from './logger.ts'
import type {
  CallEnding,
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
import { type Settler, type SettlingTrace, settleOn } from './settlers.ts'

/** How a call is opened; every member has a default. */
export interface CallOptions {
  /** Decides the inbound protocol. Defaults to the path, as {@link protocolByPath} reads it. */
  protocol?: ((path: string) => Protocol) | undefined
  /** Where faults of the call's own machinery are told. Defaults to the console. */
  logger?: Logger | undefined
}

/**
 * What one request knows about itself, handed from middleware to middleware. Each writes its own part and reads what
 * earlier ones wrote; it is the only thing they share. Read it with {@link callOf}.
 */
export class Call extends Lifecycle {
  /** Request id: `req_…`, equal to `X-Request-Id` and `request_id`. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly protocol: Protocol
  readonly method: string
  /** Path without the query, as the caller sent it. */
  readonly path: string
  /** The address Express sees under the app's own `trust proxy` setting. */
  readonly clientIp: string | null
  /** The caller's own `X-Request-Id`: kept, never trusted as the id. */
  readonly clientRequestId: string | null
  readonly logger: Logger

  /** Who calls. Null, like every part that nobody has written. */
  principal: Principal | null = null
  /** The model the caller asked for, whether it exists or not. */
  model: string | null = null
  /** What was read off the body. */
  request: CallRequest | null = null
  /** The one line that may serve the call; null: any. */
  pin: Pin | null = null
  /** Notes an answer that its line keeps, before its id goes out; undefined: nothing to wait for. */
  keepAnswer: ((answer: KeptAnswer) => Promise<void> | undefined) | null = null
  /** Lines removed and why, and the attempts. */
  routing: RoutingTrace | null = null
  /** The number of the event to come, in a stream whose events are numbered. Written by `route`. */
  nextEventNumber: number | undefined
  /** What was used, by the line that answered. Written by `route`. */
  usage: Usage | null = null
  servedBy: ServedBy | null = null
  /** What was held and charged, in nano-units. */
  billing: BillingTrace | null = null
  /** When it was made durable; null where nothing had to be. */
  settling: SettlingTrace | null = null
  /** How it ended; null while it runs. */
  outcome: CallOutcome | null = null
  /** The limit that refused the call. */
  limit: LimitRefusal | null = null
  idempotency: IdempotencyTrace | null = null
  /**
   * Who writes the log entry of a call that is settled: the log's own `writer`, or the `ledger`, which then sets
   * `written`. Null without a call log.
   */
  entryBy: 'writer' | 'ledger' | 'written' | null = null

  /** What the call answers on, unless that is a socket. */
  readonly #response: ServerResponse | undefined
  #settlers: Settler[] | undefined
  #proofs: (() => void)[] | undefined
  #failListeners: (() => void)[] | undefined

  constructor(req: IncomingMessage, target: CallTarget, options: CallOptions = {}) {
    super(target)
    this.startedAt = Date.now()
    this.id = newRequestId(this.startedAt)
    this.method = req.method ?? 'GET'
    this.path = pathOf(req)
    this.protocol = (options.protocol ?? protocolByPath)(this.path)
    this.clientIp = clientIpOf(req)
    this.clientRequestId = clientRequestIdOf(req)
    this.logger = options.logger ?? consoleLogger
    this.#response = 'setHeader' in target ? target : undefined
    if (this.#response?.headersSent === false) {
      for (const name of this.protocol.requestIdHeaders) this.#response.setHeader(name, this.id)
    }
  }

  /** Registers durable work that must be done before the last event of an answer goes out. */
  onSettle(run: Settler): void {
    if (this.#settlers) this.#settlers.push(run)
    else this.#settlers = [run]
  }

  /**
   * Runs the settling work, each once, in the order it was registered; undefined when nothing of it waits, so that the
   * usual path awaits nothing.
   *
   * @throws what a settler throws, at once or as a rejection: the answer must then not be finished.
   */
  settle(ending: CallEnding): Promise<void> | undefined {
    const settlers = this.#settlers
    if (!settlers) return undefined
    this.#settlers = undefined
    this.settling = { startedAt: Date.now(), endedAt: null }
    for (let i = 0; i < settlers.length; i++) {
      const running = settlers[i]?.(ending)
      if (running) return settleOn(running, settlers.slice(i + 1), ending, this.settling)
    }
    this.settling.endedAt = Date.now()
    return undefined
  }

  /**
   * Charges the call for what your own handler did; charging again adds. It is written
   * when the answer ends, and only if that is a success or some of it was sent.
   *
   * @param amount a decimal string in units of the currency, or a bigint of nano-units; not negative.
   * @throws TypeError when `billingGuard` does not stand before the handler, or the call has been settled.
   * @throws RangeError when the amount is none.
   * @example
   * app.post('/maps', billingGuard({ pool, reserve: () => '0.02' }), (req, res) => {
   *   callOf(req).charge('0.015')
   *   res.json(drawMap(req.body))
   * })
   */
  charge(amount: bigint | string): void {
    const nanos = typeof amount === 'string' ? parseAmount(amount) : amount
    if (nanos < 0n) throw new RangeError(`charge: ${amount} is negative`)
    if (!this.billing) throw new TypeError('charge: mount billingGuard before the handler that charges')
    if (this.billing.charged !== null) throw new TypeError('charge: the call has been settled already')
    this.billing.own = (this.billing.own ?? 0n) + nanos
  }

  /**
   * Registers a check that the call may still go on, such as that a claim is still its own. It throws when not.
   */
  onProve(check: () => void): void {
    if (this.#proofs) this.#proofs.push(check)
    else this.#proofs = [check]
  }

  /**
   * Runs the checks; before each attempt and before the last byte.
   *
   * @throws what a check throws: nothing further may be sent.
   */
  prove(): void {
    if (this.#proofs) for (const check of this.#proofs) check()
  }

  /**
   * Makes the error that refuses this call. It carries the request id as a header, so that it is right in a plain
   * Express app too.
   *
   * @example
   * throw call.refuse('key_expired')
   */
  refuse(code: ErrorCode, options?: GatewayErrorOptions): GatewayError {
    return this.stamp(new GatewayError(code, options))
  }

  /** Adds this call's request id headers to an error. */
  stamp(error: GatewayError): GatewayError {
    for (const name of this.protocol.requestIdHeaders) error.headers[name] = this.id
    return error
  }

  /** Calls `listener` whenever an error of this call is worded: whoever threw it does not go on. Also after its end. */
  onFail(listener: () => void): void {
    if (this.#failListeners) this.#failListeners.push(listener)
    else this.#failListeners = [listener]
  }

  /** Notes how the call failed; the first failure stands. Called by whoever words the error. */
  fail(error: GatewayError): void {
    this.#noteFailure(error)
    if (this.#failListeners) for (const listener of this.#failListeners) listener()
  }

  #noteFailure(error: GatewayError): void {
    if (this.outcome) return
    const sent = this.#response?.headersSent === true
    const interrupted = sent || error.code === 'client_closed_request'
    const tried = this.routing !== null && this.routing.attempts.length > 0
    const failed = tried || error.code === 'internal_error'
    const finish: Finish = interrupted ? 'interrupted' : failed ? 'failed' : 'refused'
    this.outcome = { status: sent ? this.#status : error.status, errorCode: error.code, finish }
  }

  protected fault(error: unknown, name: string): void {
    this.logger.error({ err: error, requestId: this.id, name }, 'giving back failed')
  }

  protected conclude(whole: boolean): void {
    if (this.outcome) return
    const status = this.#status
    this.outcome = whole
      ? { status, errorCode: null, finish: status < 400 ? 'completed' : 'refused' }
      : { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
  }

  get #status(): number {
    return this.#response ? this.#response.statusCode : 101
  }
}
