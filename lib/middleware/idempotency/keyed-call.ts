import type { ServerResponse } from 'node:http'
import type { AnswerBytes, Call, IdempotencyTrace } from '../../core/call/index.ts'
import type { AnswerBody } from './answer-body.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { HeldClaim } from './held-claim.ts'
import { refuseLost, refuseUnrecorded } from './refusals.ts'

/** Options of a {@link KeyedCall}. */
export interface KeyedCallOptions {
  readonly keeper: ClaimKeeper
  /** Whether this middleware completes the record, and not a ledger in the transaction of the charge. */
  readonly completesHere: boolean
  /** How long a handler may go on after its caller left before its key is freed, in milliseconds. */
  readonly handlerMs: number
}

/** A call that holds a claim. At its end it completes the record or frees the key. */
export class KeyedCall {
  readonly #call: Call
  readonly #trace: IdempotencyTrace
  readonly #held: HeldClaim
  readonly #body: AnswerBody
  readonly #res: ServerResponse
  readonly #options: KeyedCallOptions
  /** Set once a handler has ended its answer. */
  #answered = false
  /** Set once a handler has thrown. */
  #failed = false

  constructor(
    call: Call,
    trace: IdempotencyTrace,
    held: HeldClaim,
    body: AnswerBody,
    res: ServerResponse,
    options: KeyedCallOptions,
  ) {
    this.#call = call
    this.#trace = trace
    this.#held = held
    this.#body = body
    this.#res = res
    this.#options = options
    trace.claim = held
  }

  /** Registers with the call. */
  begin(): void {
    const call = this.#call
    call.onProve(() => this.#prove())
    if (this.#options.completesHere) call.onSettle(({ unsent }) => this.#settle(unsent))
    call.onFail(() => this.#fail())
    call.onEnd('idempotency claim', () => this.#end())
  }

  /**
   * Returns what the end of an answer must wait for: the completed record of a success, or the freed key of a failure, so that
   * a retry right after the answer finds it so. Undefined: nothing.
   *
   * @throws {GatewayError} (or rejects with) what must be answered instead.
   */
  beforeEnd(): Promise<void> | undefined {
    this.#answered = true
    const { state } = this.#held
    if (state === 'lost' && this.#res.statusCode < 400) throw refuseLost(this.#call)
    if (state !== 'running') return undefined
    if (this.#res.statusCode >= 400) {
      return this.#produced ? undefined : this.#options.keeper.release(this.#held)
    }
    const { statusCode: status } = this.#res
    const settling = this.#call.settle({
      outcome: { status, errorCode: null, finish: 'completed' },
      unsent: null,
    })
    if (settling) return settling.then(() => this.#prove())
    this.#prove()
    return undefined
  }

  /** Keeps what is sent. */
  onSend(chunk: unknown, encoding: unknown): void {
    this.#body.addSent(chunk, encoding)
  }

  /** Whether the call has produced output: it has usage, or has sent part of an answer that is not an error. */
  get #produced(): boolean {
    if (this.#call.usage !== null) return true
    const { statusCode, headersSent } = this.#res
    return statusCode < 400 && (this.#answered || (headersSent && !this.#body.empty))
  }

  #prove(): void {
    if (!this.#options.keeper.maySend(this.#held)) throw refuseLost(this.#call)
  }

  async #settle(unsent: AnswerBytes | null): Promise<void> {
    if (this.#held.state !== 'running' || !this.#produced) return
    await this.#trace.keepApart(unsent)
    await this.#complete()
  }

  async #complete(): Promise<void> {
    let kept: boolean
    try {
      kept = await this.#options.keeper.complete(this.#held)
    } catch (error) {
      throw refuseUnrecorded(this.#call, error)
    }
    if (!kept) throw refuseLost(this.#call)
  }

  #end(): Promise<void> | undefined {
    void this.#trace.keepApart(null)
    if (this.#trace.partsApart === 0) this.#trace.responseBody = this.#body.text()
    if (this.#produced || !this.#mayStillRun) return this.#giveBack()
    setTimeout(() => void this.#giveBack(), this.#options.handlerMs).unref()
    return undefined
  }

  /** Notes that a handler has thrown. If its call has ended, the key is given back here, else at the call's end. */
  #fail(): void {
    this.#failed = true
    if (this.#call.ended) void this.#giveBack()
  }

  /** Completes the record of a call that produced something, and frees the key of any other. */
  #giveBack(): Promise<void> | undefined {
    if (this.#held.state !== 'running') return undefined
    const { keeper } = this.#options
    return this.#produced ? keeper.complete(this.#held).then(ignore, ignore) : keeper.release(this.#held)
  }

  /** Whether the handler may still run although its caller left. Handlers that route, or hold the call, do not. */
  get #mayStillRun(): boolean {
    return this.#call.left && !this.#answered && !this.#failed && this.#call.routing === null
  }
}

/** Does nothing: the keeper has logged the failure and tries again. */
function ignore(): void {}
