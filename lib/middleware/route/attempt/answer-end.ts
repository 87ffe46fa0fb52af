import type { AnswerBytes, CallOutcome } from '../../../core/call/index.ts'
import type { GatewayError } from '../../../core/errors/index.ts'
import type { AnswerReading, StreamReader } from '../../../core/operations/index.ts'
import type { FailedEnd } from '../../../routing/attempt/failure.ts'
import type { RelaySink } from '../relay/stream-relay.ts'

/** How the exchange of a routed request ended. */
export type AnswerEnd =
  | {
      readonly kind: 'served'
      /** The whole answer, or the last events of a stream. It is sent once the call is settled. */
      unsent: AnswerBytes
      /** The content of a whole answer, until its usage is known. */
      reading?: AnswerReading | undefined
      readonly reader?: StreamReader
    }
  | { readonly kind: 'abandoned'; readonly failure?: undefined; readonly reader: StreamReader | undefined }
  | (FailedEnd & { readonly reader: StreamReader | undefined })

/** The outcome of an answer that was served whole. */
export const COMPLETED: CallOutcome = { status: 200, errorCode: null, finish: 'completed' }

/**
 * Returns the outcome of a call whose answer has ended so.
 *
 * @param endedBy why the stream was ended before its end.
 */
export function outcomeOf(end: AnswerEnd, left: boolean, endedBy: GatewayError | undefined): CallOutcome {
  if (end.kind === 'failed') return { status: 200, errorCode: end.failure.code, finish: 'interrupted' }
  if (end.kind === 'abandoned' && endedBy)
    return { status: 200, errorCode: endedBy.code, finish: 'interrupted' }
  return left ? { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' } : COMPLETED
}

/** Opens the caller's stream once the line's stream begins. */
export interface StreamOpener {
  openStream(): RelaySink
  /** Called when the first bytes of a success arrive. */
  onFirstByte?(): void
}
