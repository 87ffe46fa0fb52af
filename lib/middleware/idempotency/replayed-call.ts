import type { ServerResponse } from 'node:http'
import type { Call, IdempotencyTrace, Logger } from '../../core/call/index.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { HeldClaim } from './held-claim.ts'
import { RecordedAnswer } from './recorded-answer.ts'
import { refuseLost, refuseUnrecorded } from './refusals.ts'

/** Options of a {@link ReplayedCall}. */
export interface ReplayedCallOptions {
  readonly keeper: ClaimKeeper
  readonly keepWhen: (status: number) => boolean
  /** How long a handler may go on after its caller left before its answer counts as lost, in milliseconds. */
  readonly handlerMs: number
  readonly logger: Logger
}

/**
 * A call that holds a claim and whose answer is given again to repetitions. Once its handler has run, only an answer that
 * `keepWhen` does not want, or a refusal by another middleware, frees the key.
 */
export class ReplayedCall {
  readonly #call: Call
  readonly #held: HeldClaim
  readonly #res: ServerResponse
  readonly #options: ReplayedCallOptions
  readonly #answer: RecordedAnswer
  /** Set once a handler has ended its answer. */
  #answered = false
  #failed = false

  constructor(
    call: Call,
    trace: IdempotencyTrace,
    held: HeldClaim,
    limit: number,
    res: ServerResponse,
    options: ReplayedCallOptions,
  ) {
    this.#call = call
    this.#held = held
    this.#res = res
    this.#options = options
    this.#answer = new RecordedAnswer(res, limit)
    trace.claim = held
  }

  /** Registers with the call. */
  begin(): void {
    const call = this.#call
    call.onProve(() => this.#prove())
    call.onFail(() => this.#fail())
    call.onEnd('idempotency claim', () => this.#end())
  }

  onSend(chunk: unknown, encoding: unknown): void {
    this.#answer.add(chunk, encoding)
  }

  /**
   * Returns what the end of an answer waits for: the record that keeps it, or the freed key.
   *
   * @throws {GatewayError} (or rejects with) what must be answered instead.
   */
  beforeEnd(): Promise<void> | undefined {
    this.#answered = true
    const { state } = this.#held
    if (state === 'lost') throw refuseLost(this.#call)
    if (state !== 'running') return undefined
    return this.#isKept ? this.#finish() : this.#options.keeper.release(this.#held)
  }

  async #finish(): Promise<void> {
    const { statusCode: status } = this.#res
    if (status < 400) {
      const outcome = { status, errorCode: null, finish: 'completed' } as const
      await this.#call.settle({ outcome, unsent: null })
    }
    this.#prove()
    this.#held.answer = this.#answer.encode()
    let kept: boolean
    try {
      kept = await this.#options.keeper.complete(this.#held)
    } catch (error) {
      throw refuseUnrecorded(this.#call, error)
    }
    if (!kept) throw refuseLost(this.#call)
  }

  get #isKept(): boolean {
    const { statusCode } = this.#res
    // The handler has not run, or has not got what it needs.
    if (this.#call.refusal?.status === statusCode) return false
    try {
      return this.#options.keepWhen(statusCode)
    } catch (error) {
      this.#options.logger.error(
        { err: error, requestId: this.#call.id },
        'idempotency: "keepWhen" has thrown',
      )
      return true
    }
  }

  #prove(): void {
    if (!this.#options.keeper.maySend(this.#held)) throw refuseLost(this.#call)
  }

  /** The caller has left, or the answer broke off. The handler may still go on to answer. */
  #end(): Promise<void> | undefined {
    if (this.#answered) return undefined
    if (this.#call.routing !== null && !this.#res.headersSent) return this.#options.keeper.release(this.#held)
    if (this.#failed || this.#call.routing !== null) return this.#giveUp()
    setTimeout(() => void this.#giveUp(), this.#options.handlerMs).unref()
    return undefined
  }

  /** Notes that a handler has thrown. What is answered then is recorded, unless a part of another answer was sent. */
  #fail(): void {
    this.#failed = true
    if (this.#call.ended && this.#res.headersSent) void this.#giveUp()
  }

  /** Uses the key up without an answer: nobody can tell what the handler has done. */
  #giveUp(): Promise<void> | undefined {
    if (this.#answered || this.#held.state !== 'running') return undefined
    return this.#options.keeper.complete(this.#held).then(ignore, ignore)
  }
}

/** Does nothing: the keeper has logged the failure and tries again. */
function ignore(): void {}
