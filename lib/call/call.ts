import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../errors/index.ts'
import { type Protocol, protocolByPath } from '../protocols/index.ts'
import { type CallTarget, Lifecycle } from './lifecycle.ts'
import { consoleLogger, type Logger } from './logger.ts'
import type {
  CallOutcome,
  CallRequest,
  Finish,
  IdempotencyTrace,
  LimitRefusal,
  Principal,
  RoutingTrace,
  Usage,
} from './parts.ts'
import { newRequestId } from './request-id.ts'

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
export class Call {
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

  principal: Principal | null = null
  /** The model the caller asked for, whether it exists or not. */
  model: string | null = null
  request: CallRequest | null = null
  routing: RoutingTrace | null = null
  usage: Usage | null = null
  outcome: CallOutcome | null = null
  /** The limit that refused the call. */
  limit: LimitRefusal | null = null
  idempotency: IdempotencyTrace | null = null

  readonly #target: CallTarget
  readonly #lifecycle: Lifecycle
  #settlers: (() => Promise<void>)[] | undefined
  #proofs: (() => void)[] | undefined

  constructor(req: IncomingMessage, target: CallTarget, options: CallOptions = {}) {
    this.startedAt = Date.now()
    this.id = newRequestId(this.startedAt)
    this.method = req.method ?? 'GET'
    this.path = pathOf(req)
    this.protocol = (options.protocol ?? protocolByPath)(this.path)
    this.clientIp = clientIpOf(req)
    this.clientRequestId = clientRequestIdOf(req)
    this.logger = options.logger ?? consoleLogger
    this.#target = target
    this.#lifecycle = new Lifecycle(
      target,
      () => this.#concludeOutcome(),
      (error, name) => this.logger.error({ err: error, requestId: this.id, name }, 'giving back failed'),
    )
    if (isResponse(target) && !target.headersSent) {
      for (const name of this.protocol.requestIdHeaders) target.setHeader(name, this.id)
    }
  }

  /** Whether the call is over and everything it took was given back. */
  get ended(): boolean {
    return this.#lifecycle.ended
  }

  /** Whether the caller went away before the whole answer was handed over. */
  get left(): boolean {
    return this.#lifecycle.left
  }

  /**
   * Registers what is to be given back when the call ends, however it ends; last taken, first given back. What throws
   * is logged and hinders no other. On an ended call it runs at once.
   *
   * @example
   * const slot = await slots.acquire(account)
   * call.onEnd('slot', () => slot.release())
   */
  onEnd(name: string, run: () => void | Promise<void>): void {
    this.#lifecycle.onEnd(name, run)
  }

  /** Calls `listener` once if the caller leaves before the whole answer was handed over. Returns its removal. */
  onLeave(listener: () => void): () => void {
    return this.#lifecycle.onLeave(listener)
  }

  /** Keeps the call from ending while work for it goes on after its response closed. Returns the release. */
  hold(): () => void {
    return this.#lifecycle.hold()
  }

  /** Registers durable work that must be done before the last event of an answer goes out. */
  onSettle(run: () => Promise<void>): void {
    this.#settlers ??= []
    this.#settlers.push(run)
  }

  /**
   * Runs the settling work, each once; undefined when there is none, so that the usual path awaits nothing.
   *
   * @throws what a settler throws: the answer must then not be finished.
   */
  settle(): Promise<void> | undefined {
    const settlers = this.#settlers
    if (!settlers) return undefined
    this.#settlers = undefined
    return (async () => {
      for (const run of settlers) await run()
    })()
  }

  /**
   * Registers a check that the call may still go on, such as that a claim is still its own. It throws when not.
   */
  onProve(check: () => void): void {
    this.#proofs ??= []
    this.#proofs.push(check)
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

  /** Notes how the call failed; the first failure stands. Called by whoever words the error. */
  fail(error: GatewayError): void {
    if (this.outcome) return
    const sent = this.#headersSent()
    const interrupted = sent || error.code === 'client_closed_request'
    const tried = this.routing !== null && this.routing.attempts.length > 0
    const failed = tried || error.code === 'internal_error'
    const finish: Finish = interrupted ? 'interrupted' : failed ? 'failed' : 'refused'
    this.outcome = { status: sent ? this.#status() : error.status, errorCode: error.code, finish }
  }

  #concludeOutcome(): void {
    if (this.outcome) return
    this.outcome = this.#target.writableFinished
      ? { status: this.#status(), errorCode: null, finish: this.#status() < 400 ? 'completed' : 'refused' }
      : { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
  }

  #headersSent(): boolean {
    return isResponse(this.#target) && this.#target.headersSent
  }

  #status(): number {
    return isResponse(this.#target) ? this.#target.statusCode : 101
  }
}

function isResponse(target: CallTarget): target is ServerResponse {
  return 'setHeader' in target
}

function pathOf(req: IncomingMessage): string {
  const url = (req as { originalUrl?: string }).originalUrl ?? req.url ?? '/'
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** An IPv4 address that came over an IPv6 socket is the IPv4 address. */
function clientIpOf(req: IncomingMessage): string | null {
  const { app } = req as { app?: { enabled?(setting: string): boolean } }
  // Express works out req.ip anew at every look, even where no proxy is trusted and the answer is the socket's.
  const trusting = app?.enabled?.('trust proxy') ?? false
  const ip = (trusting ? (req as { ip?: string }).ip : undefined) ?? req.socket.remoteAddress ?? null
  return ip?.startsWith('::ffff:') && ip.includes('.') ? ip.slice(7) : ip
}

/** Bounded and printable: it ends up in logs. */
function clientRequestIdOf(req: IncomingMessage): string | null {
  const value = req.headers['x-request-id']
  if (typeof value !== 'string' || value === '') return null
  return value.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
