import type { ServerResponse } from 'node:http'
import type { AnswerBytes, Call, IdempotencyTrace } from '../../core/call/index.ts'
import type { AnswerBody } from './answer-body.ts'
import { ClaimedCall, type ClaimedCallOptions } from './claimed-call.ts'
import type { HeldClaim } from './held-claim.ts'
import { refuseLost } from './refusals.ts'

export interface KeyedCallOptions extends ClaimedCallOptions {
  /** Whether this middleware completes the record, and not a ledger in the transaction of the charge. */
  readonly completesHere: boolean
}

/** A call that holds a claim and whose repetitions are refused. What has produced nothing frees its key. */
export class KeyedCall extends ClaimedCall<KeyedCallOptions> {
  readonly #trace: IdempotencyTrace
  readonly #body: AnswerBody

  constructor(
    call: Call,
    trace: IdempotencyTrace,
    held: HeldClaim,
    body: AnswerBody,
    res: ServerResponse,
    options: KeyedCallOptions,
  ) {
    super(call, trace, held, res, options)
    this.#trace = trace
    this.#body = body
  }

  override begin(): void {
    super.begin()
    if (this.options.completesHere) this.call.onSettle(({ unsent }) => this.#settle(unsent))
  }

  onSend(chunk: unknown, encoding: unknown): void {
    this.#body.addSent(chunk, encoding)
  }

  protected endOfAnswer(): Promise<void> | undefined {
    const { state } = this.held
    const { statusCode: status } = this.res
    if (state === 'lost' && status < 400) throw refuseLost(this.call)
    if (state !== 'running') return undefined
    if (status >= 400) return this.#produced ? undefined : this.release()
    const settling = this.call.settle({
      outcome: { status, errorCode: null, finish: 'completed' },
      unsent: null,
    })
    if (settling) return settling.then(() => this.prove())
    this.prove()
    return undefined
  }

  /** Whether the call has produced output: it has usage, or has sent part of an answer that is not an error. */
  get #produced(): boolean {
    if (this.call.usage !== null) return true
    const { statusCode, headersSent } = this.res
    return statusCode < 400 && (this.answered || (headersSent && !this.#body.empty))
  }

  async #settle(unsent: AnswerBytes | null): Promise<void> {
    if (this.held.state !== 'running' || !this.#produced) return
    await this.#trace.keepApart(unsent)
    await this.complete()
  }

  protected endOfCall(): Promise<void> | undefined {
    void this.#trace.keepApart(null)
    if (this.#trace.partsApart === 0) this.#trace.responseBody = this.#body.text()
    return this.#produced || !this.#mayStillRun ? this.giveBack() : this.leaveToHandler()
  }

  protected get failureIsEnd(): boolean {
    return true
  }

  /** Completes the record of a call that produced something, and frees the key of any other. */
  protected giveBack(): Promise<void> | undefined {
    if (this.held.state !== 'running') return undefined
    return this.#produced ? this.completeLate() : this.release()
  }

  /** Whether the handler may still run although its caller left. Handlers that route, or hold the call, do not. */
  get #mayStillRun(): boolean {
    return this.call.left && !this.answered && !this.failed && this.call.routing === null
  }
}
