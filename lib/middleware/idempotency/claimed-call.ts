import type { ServerResponse } from 'node:http'
import type { Call, IdempotencyTrace } from '../../core/call/index.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { HeldClaim } from './held-claim.ts'
import { refuseLost, refuseUnrecorded } from './refusals.ts'

export interface ClaimedCallOptions {
  readonly keeper: ClaimKeeper
  /** How long a handler may go on after its caller left before its claim is given back, in milliseconds. */
  readonly handlerMs: number
}

/** A call that holds a claim: at its end the record is completed, or the key freed. Which of them, the subclass says. */
export abstract class ClaimedCall<Options extends ClaimedCallOptions> {
  protected readonly call: Call
  protected readonly held: HeldClaim
  protected readonly res: ServerResponse
  protected readonly options: Options
  /** Set once a handler has ended its answer. */
  protected answered = false
  /** Set once a handler has thrown. */
  protected failed = false
  /** Gives the claim back if the handler does not answer without its caller. It retains the call. */
  #late: NodeJS.Timeout | undefined

  constructor(call: Call, trace: IdempotencyTrace, held: HeldClaim, res: ServerResponse, options: Options) {
    this.call = call
    this.held = held
    this.res = res
    this.options = options
    trace.claim = held
  }

  /** Registers with the call. */
  begin(): void {
    this.call.onProve(() => this.prove())
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
  protected prove(): void {
    if (!this.options.keeper.maySend(this.held)) throw refuseLost(this.call)
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

  /** Completes the record behind the end of the call, when nobody can be told of a failure. */
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
