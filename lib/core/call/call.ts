import type { Tags } from '../catalog/index.ts'
import type { ErrorCode, GatewayError, GatewayErrorOptions } from '../errors/index.ts'
import type { Protocol } from '../protocols/index.ts'
import type { GuardTrace } from './answer-filter.ts'
import type { BillingTrace } from './billing-trace.ts'
import type { Logger } from './logger.ts'
import type {
  CacheTrace,
  CallEnding,
  CallLimits,
  CallOutcome,
  CallRequest,
  IdempotencyTrace,
  LimitRefusal,
  Principal,
  RoutingTrace,
  Usage,
} from './parts.ts'

/** Follows the keys of calls that take long. */
export interface KeyWatch {
  /** Calls `end` with the refusal once the call's key no longer admits it, within 5 s, until the call ends. */
  follow(call: Call, end: (error: GatewayError) => void): void
}

/** Does durable work before the end of an answer. If it throws or rejects, the error is answered instead. */
export type Settler = (ending: CallEnding) => Promise<void> | undefined

/**
 * The state of one request. Each middleware writes its own part and reads what earlier ones wrote; they share nothing
 * else. Get it with `callOf(req)`. A part is null until its middleware has written it.
 *
 * It ends exactly once, however its response ends: finished, caller gone before or after the headers, exception, aborted
 * upstream. The response or socket emits `close` in each of these cases. The call ends when that has happened and nothing
 * keeps it open.
 */
export interface Call {
  /** The request id: `req_…`, the same as `X-Request-Id` and `request_id`. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly protocol: Protocol
  readonly method: string
  /** The path without the query, as the caller sent it. */
  readonly path: string
  /** The address that Express determines under the app's own `trust proxy` setting. */
  readonly clientIp: string | null
  /** The caller's own `X-Request-Id`. It is logged and never used as the id. */
  readonly clientRequestId: string | null
  readonly logger: Logger

  /** The account and the key. A middleware of your own in place of `authenticate` may write it. */
  principal: Principal | null
  /** The user that the caller has named. */
  user: string | null
  /** The tags that say what the call is for. */
  tags: Tags | null
  /** Follows the key of a call that takes long. Written by `authenticate`. */
  keyWatch: KeyWatch | null
  /** The model that the caller asked for, whether it exists or not. */
  model: string | null
  /** The operation, the body and the parts of it that were read. */
  request: CallRequest | null
  readonly idempotency: Pick<IdempotencyTrace, 'key' | 'originalRequestId' | 'claim'> | null
  /** The decisions of guards. */
  readonly guards: readonly GuardTrace[]
  /** Whether the call was answered from a cache; null if it was not looked for. */
  readonly cache: CacheTrace | null
  /** The limits that admitted the call. */
  readonly limits: CallLimits | null
  /** The limit that refused the call. */
  readonly limit: LimitRefusal | null
  /** The held and charged amounts, in nano-units. */
  readonly billing: Readonly<Omit<BillingTrace, 'own' | 'holdPart'>> | null
  /** The removed lines with the reasons, and the attempts. */
  readonly routing: RoutingTrace | null
  /** The usage that the line reported. A handler of your own may write it. */
  usage: Usage | null
  /** How the call ended; null while it runs. */
  readonly outcome: CallOutcome | null

  /** Whether the call has ended and everything it acquired was released. */
  readonly ended: boolean
  /**
   * Whether the chain has nobody left to answer: the caller has left or was disconnected before the whole answer was handed
   * over, or the call was aborted.
   */
  readonly left: boolean

  /**
   * Creates the error that refuses this call. It has the request id as a header, so that it is right in an app without
   * `errorEnvelope`, too.
   *
   * @example
   * throw call.refuse('key_expired')
   */
  refuse(code: ErrorCode, options?: GatewayErrorOptions): GatewayError

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
  charge(amount: bigint | string): void

  /**
   * Registers a function that runs when the call ends, however it ends; the last registered runs first. An error in one
   * is logged and does not stop the others. On a call that has ended, the function runs at once, so that nothing leaks.
   *
   * @example
   * const slot = await slots.acquire(account)
   * call.onEnd('slot', () => slot.release())
   */
  onEnd(name: string, run: (call: Call) => void | Promise<void>): void

  /** Calls `listener` once when the call is {@link left}; at once if it is already. */
  onLeave(listener: () => void): void
  /** Removes a listener of {@link onLeave}. */
  offLeave(listener: () => void): void

  /** Registers a listener for each error of this call that is written as an answer, also after the end of the call. */
  onFail(listener: () => void): void

  /** Registers durable work that must be done before the last event of an answer is sent. */
  onSettle(run: Settler): void
  /**
   * Runs the settlers, each once, in the order of registration. Returns undefined if there is none. If it rejects, with the
   * error of a settler, the answer must not be finished.
   */
  settle(ending: CallEnding): Promise<void> | undefined

  /**
   * Keeps the call open while work for it continues after its response has closed, such as reading the rest of an
   * upstream's answer.
   *
   * @returns a function that lets the call end; further calls of it do nothing.
   */
  hold(): () => void

  /**
   * Ends the call from outside its chain, whatever the chain is doing: everything that waits for this call stops as if its
   * caller had left, and the entry has this error. If nothing was sent yet, the error is the answer; else the connection is
   * cut. Does nothing to a call that has ended, whose caller has left, or that was upgraded: `UpgradeHandler` closes those.
   *
   * @example
   * for (const call of running) call.abort(new GatewayError('internal_error', { message: 'The service stops.' }))
   */
  abort(error: GatewayError): void
}
