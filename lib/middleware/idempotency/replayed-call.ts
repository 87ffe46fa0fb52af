import type { ServerResponse } from 'node:http'
import type { Call, IdempotencyTrace, Logger } from '../../core/call/index.ts'
import { ClaimedCall, type ClaimedCallOptions } from './claimed-call.ts'
import type { HeldClaim } from './held-claim.ts'
import { RecordedAnswer } from './recorded-answer.ts'
import { refuseLost } from './refusals.ts'

export interface ReplayedCallOptions extends ClaimedCallOptions {
  readonly keepWhen: (status: number) => boolean
  readonly logger: Logger
}

/**
 * A call that holds a claim and whose answer is given again to repetitions. Once its handler has run, only an answer that
 * `keepWhen` does not want, or a refusal by another middleware, frees the key.
 */
export class ReplayedCall extends ClaimedCall<ReplayedCallOptions> {
  readonly #answer: RecordedAnswer

  constructor(
    call: Call,
    trace: IdempotencyTrace,
    held: HeldClaim,
    limit: number,
    res: ServerResponse,
    options: ReplayedCallOptions,
  ) {
    super(call, trace, held, res, options)
    this.#answer = new RecordedAnswer(res, limit)
  }

  onSend(chunk: unknown, encoding: unknown): void {
    this.#answer.add(chunk, encoding)
  }

  protected endOfAnswer(): Promise<void> | undefined {
    const { state } = this.held
    if (state === 'lost') throw refuseLost(this.call)
    if (state !== 'running') return undefined
    return this.#isKept ? this.#finish() : this.release()
  }

  async #finish(): Promise<void> {
    const { statusCode: status } = this.res
    if (status < 400) {
      const outcome = { status, errorCode: null, finish: 'completed' } as const
      await this.call.settle({ outcome, unsent: null })
    }
    this.prove()
    this.held.answer = this.#answer.encode()
    await this.complete()
  }

  get #isKept(): boolean {
    const { statusCode } = this.res
    // The handler has not run, or has not got what it needs.
    if (this.call.refusal?.status === statusCode) return false
    try {
      return this.options.keepWhen(statusCode)
    } catch (error) {
      this.options.logger.error({ err: error, requestId: this.call.id }, 'idempotency: "keepWhen" has thrown')
      return true
    }
  }

  /** The caller has left, or the answer broke off. The handler may still go on to answer. */
  protected endOfCall(): Promise<void> | undefined {
    if (this.answered) return undefined
    if (this.call.routing !== null && !this.res.headersSent) return this.release()
    if (this.failed || this.call.routing !== null) return this.giveBack()
    return this.leaveToHandler()
  }

  /** What is answered to a failure is recorded, unless a part of another answer was sent. */
  protected get failureIsEnd(): boolean {
    return this.res.headersSent
  }

  /** Uses the key up without an answer: nobody can tell what the handler has done. */
  protected giveBack(): Promise<void> | undefined {
    if (this.answered || this.held.state !== 'running') return undefined
    return this.completeLate()
  }
}
