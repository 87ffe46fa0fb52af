import type { AttemptRecord, CallRequest } from '../core/call/index.ts'
import type { Line } from '../core/catalog/index.ts'
import type { GatewayError } from '../core/errors/index.ts'
import type { ProviderConstraint } from '../core/operations/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { Departure } from './attempt/departure.ts'
import type { ExchangeEnd } from './attempt/failure.ts'
import type { Candidate } from './candidates/candidate.ts'

/** How `tryCandidates` serves a call with a candidate. Calls, videos and pass-through each have a policy. */
export interface AttemptPolicy<End extends ExchangeEnd = ExchangeEnd> {
  /** The request that the filters read; null for a call that is passed on unread. */
  readonly request: CallRequest | null
  /** The caller's constraint for a call that is passed on unread. */
  readonly constraint?: ProviderConstraint | undefined
  /** Returns why the line cannot take the request at all. If absent, the line's endpoints decide. */
  unfit?(line: Line): GatewayError | undefined
  /** Prepares the request for a candidate, or returns the member that cannot be translated for it. */
  prepare?(candidate: Candidate): Untranslatable | undefined
  /**
   * Sends the request to a candidate and receives the answer.
   *
   * @param pass the policy reports the first output to it, and the end if it returns no promise.
   * @param deadline when all attempts of the call must have ended, on the monotonic clock.
   * @param ahead all lines that may be tried, in their order.
   * @returns the end, or a rejection with an error that ends the call; undefined if `pass` is told the end.
   */
  attempt(
    candidate: Candidate,
    pass: AttemptPass<End>,
    deadline: number,
    ahead: readonly Candidate[],
  ): Promise<End> | undefined
  /** The record of the last attempt; undefined if nothing was sent. */
  readonly record: AttemptRecord | undefined
  /** Set once the caller has left during an attempt. */
  readonly departure?: Departure | undefined
  /** Completes the call with an attempt that was served, was left by its caller, or failed after output was sent. */
  finish(end: End, candidate: Candidate): Promise<void> | undefined
}

/** What the policy of an attempt reports while it runs. */
export interface AttemptPass<End extends ExchangeEnd = ExchangeEnd> {
  /** Reports that the line answers well, up to its first output. */
  success(): void
  /** Reports the end of an attempt that has no promise of it. */
  ended(end: End): void
}
