import type { ServerResponse } from 'node:http'
import type { Call, IdempotencyTrace } from '../../core/call/index.ts'
import type { AnswerBody } from './answer-body.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { HeldClaim } from './held-claim.ts'
import { refuseLost, refuseUnrecorded } from './refusals.ts'

/** What a keyed call works with. */
export interface KeyedCallOptions {
  readonly keeper: ClaimKeeper
  /** Whether the record is completed here, and not by a ledger in the transaction of the charge. */
  readonly completesHere: boolean
  /** How long a handler may go on after its caller left before its key is freed, in milliseconds. */
  readonly handlerMs: number
}

/** A call that runs under a claim: from the claim to the completed, or freed, key. */
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

  /** From here on the claim follows the call. */
  begin(): void {
    const call = this.#call
    call.onProve(() => this.#prove())
    if (this.#options.completesHere) call.onSettle(() => this.#settle())
    call.onFail(() => this.#fail())
    call.onEnd('idempotency claim', () => this.#end())
  }

  /**
   * What the end of an answer has to wait for: the completed record of one that succeeded, the freed key of one that
   * did not, so that a retry right behind the answer finds it so. Undefined: nothing.
   *
   * @throws {GatewayError} what has to be answered instead; as a rejection, too.
   */
  beforeEnd(): Promise<void> | undefined {
    this.#answered = true
    if (this.#held.state !== 'running') return undefined
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

  /** Output belongs to a call that has used something, or that has sent some of an answer that is no error. */
  get #produced(): boolean {
    if (this.#call.usage !== null) return true
    const { statusCode, headersSent } = this.#res
    return statusCode < 400 && (this.#answered || (headersSent && !this.#body.empty))
  }

  #prove(): void {
    if (!this.#options.keeper.maySend(this.#held)) throw refuseLost(this.#call)
  }

  async #settle(): Promise<void> {
    if (this.#held.state === 'running' && this.#produced) await this.#complete()
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
    this.#trace.responseBody = this.#body.text()
    if (this.#produced || !this.#mayStillRun) return this.#giveBack()
    setTimeout(() => void this.#giveBack(), this.#options.handlerMs).unref()
    return undefined
  }

  /** A handler that went on without its caller has thrown. While the call runs its end gives the key back. */
  #fail(): void {
    this.#failed = true
    if (this.#call.ended) void this.#giveBack()
  }

  /** However the call ended: what it produced uses the key up, and a call that produced nothing frees it. */
  #giveBack(): Promise<void> | undefined {
    if (this.#held.state !== 'running') return undefined
    const { keeper } = this.#options
    return this.#produced ? keeper.complete(this.#held).then(ignore, ignore) : keeper.release(this.#held)
  }

  /** A handler that knows nothing of calls goes on when its caller has left; ours, and those that hold a call, do not. */
  get #mayStillRun(): boolean {
    return this.#call.left && !this.#answered && !this.#failed && this.#call.routing === null
  }
}

/** The keeper has told what is to be told, and goes on trying. */
function ignore(): void {}
