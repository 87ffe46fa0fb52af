import type { ServerResponse } from 'node:http'
import type { AnswerBytes, IdempotencyTrace, Logger, OpenCall } from '../../core/call/index.ts'
import { RecordedAnswer } from '../../core/repetition/index.ts'
import { isPromise } from '../../core/timing/index.ts'
import type { AnswerBody } from './answer-body.ts'
import type { ClaimKeeper, HeldClaim } from './claim-keeper.ts'
import { refuseLost, refuseUnrecorded } from './refusals.ts'

interface ClaimedCallOptions {
  readonly keeper: ClaimKeeper
  /** How long a handler may go on after its caller left before its claim is given back, in milliseconds. */
  readonly handlerMs: number
}

/** A call that holds a claim: at its end the record is completed, or the key freed. Which of them, the subclass says. */
abstract class ClaimedCall<Options extends ClaimedCallOptions> {
  protected readonly call: OpenCall
  protected readonly held: HeldClaim
  protected readonly res: ServerResponse
  protected readonly options: Options
  /** Set once a handler has ended its answer. */
  protected answered = false
  /** Set once a handler has thrown. */
  protected failed = false
  /** Gives the claim back if the handler does not answer without its caller. It retains the call. */
  #late: NodeJS.Timeout | undefined

  constructor(
    call: OpenCall,
    trace: IdempotencyTrace,
    held: HeldClaim,
    res: ServerResponse,
    options: Options,
  ) {
    this.call = call
    this.held = held
    this.res = res
    this.options = options
    trace.claim = held
  }

  /** Registers with the call. */
  begin(): void {
    this.call.onAssertOwnsClaim(() => this.assertOwnsClaim())
    this.call.onFail(() => this.#fail())
    this.call.onEnd('idempotency claim', () => this.endOfCall())
  }

  /** Keeps what is sent. */
  abstract onSend(chunk: unknown, encoding: unknown): void

  /**
   * Returns what the end of an answer waits for: the completed record or the freed key, so that a repetition right after the
   * answer finds it so. Undefined: nothing.
   *
   * @throws {GatewayError} (or rejects with) what must be answered instead.
   */
  beforeEnd(): Promise<void> | undefined {
    this.answered = true
    try {
      return this.endOfAnswer()
    } finally {
      // Its fate is decided: it is being released or completed, also by a ledger, or was lost.
      if (this.held.state !== 'running') clearTimeout(this.#late)
    }
  }

  /** Does what {@link beforeEnd} says. */
  protected abstract endOfAnswer(): Promise<void> | undefined

  /** Runs when the call has ended, with or without an answer. */
  protected abstract endOfCall(): Promise<void> | undefined

  /** Whether nothing more comes of a handler that has thrown behind the end of its call. */
  protected abstract get failureIsEnd(): boolean

  /** Gives back the claim of a call that has ended without an answer, unless that is done. Does not reject. */
  protected abstract giveBack(): Promise<void> | undefined

  /** @throws {GatewayError} if another call may have the key. */
  protected assertOwnsClaim(): void {
    if (!this.options.keeper.maySend(this.held)) throw refuseLost(this.call)
  }

  /** Settles a call that has succeeded. @throws {GatewayError} (as a rejection) what must be answered instead. */
  protected async settleAndCheck(): Promise<void> {
    const outcome = { status: this.res.statusCode, errorCode: null, finish: 'completed' } as const
    await this.call.settle({ outcome, unsent: null })
    this.assertOwnsClaim()
  }

  /** @throws {GatewayError} if the key was lost, or the store does not confirm. */
  protected async complete(): Promise<void> {
    clearTimeout(this.#late)
    let kept: boolean
    try {
      kept = await this.options.keeper.complete(this.held)
    } catch (error) {
      throw refuseUnrecorded(this.call, error)
    }
    if (!kept) throw refuseLost(this.call)
  }

  /** Completes the record behind the end of the call, when a failure can no longer be sent to the caller. */
  protected completeLate(): Promise<void> {
    return this.options.keeper.complete(this.held).then(ignore, ignore)
  }

  protected release(): Promise<void> {
    return this.options.keeper.release(this.held)
  }

  /** Leaves the claim to a handler that goes on although its caller left. */
  protected leaveToHandler(): undefined {
    this.#late = setTimeout(() => void this.giveBack(), this.options.handlerMs).unref()
  }

  #fail(): void {
    this.failed = true
    if (this.call.ended && this.failureIsEnd) void this.giveBack()
  }
}

/** Does nothing: the keeper has logged the failure and tries again. */
function ignore(): void {}

interface KeyedCallOptions extends ClaimedCallOptions {
  /** Whether this middleware completes the record, and not a ledger in the transaction of the charge. */
  readonly completesHere: boolean
}

/** A call that holds a claim and whose repetitions are refused. What has produced nothing frees its key. */
export class KeyedCall extends ClaimedCall<KeyedCallOptions> {
  readonly #trace: IdempotencyTrace
  readonly #body: AnswerBody

  constructor(
    call: OpenCall,
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
    return this.settleAndCheck()
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

interface ReplayedCallOptions extends ClaimedCallOptions {
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
    call: OpenCall,
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
    if (this.res.statusCode < 400) await this.settleAndCheck()
    else this.assertOwnsClaim()
    this.held.answer = this.#answer.encode()
    await this.complete()
  }

  get #isKept(): boolean {
    const { statusCode } = this.res
    // The handler has not run, or has not got what it needs.
    if (this.call.refusal?.status === statusCode) return false
    try {
      const kept: unknown = this.options.keepWhen(statusCode)
      if (!isPromise(kept)) return Boolean(kept)
      // The promise is the mistake, whether it rejects or not.
      kept.then(undefined, () => {})
      throw new TypeError('"keepWhen" must return true or false, not a promise')
    } catch (error) {
      this.options.logger.error({ err: error, requestId: this.call.id }, 'idempotency: "keepWhen" has failed')
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

  /** An error answer can still be sent, and recorded, unless a part of another answer was sent. */
  protected get failureIsEnd(): boolean {
    return this.res.headersSent
  }

  /** Uses the key up without an answer: it is not known what the handler has done. */
  protected giveBack(): Promise<void> | undefined {
    if (this.answered || this.held.state !== 'running') return undefined
    return this.completeLate()
  }
}
