import type { IncomingHttpHeaders } from 'node:http'
import type { Line, Price } from '../catalog/index.ts'
import type { ErrorCode, ErrorReason } from '../errors/index.ts'
import type { AttemptRecord, TimeoutPhase } from './parts.ts'

/** A request to a line. The line's credentials and headers are added when it is sent. */
export interface LineRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query behind the line's base URL, such as `/videos`. */
  readonly path: string
  readonly body?: LineRequestBody | undefined
  /** The headers of the caller's request; those that name versions of the line's protocol are sent, too. */
  readonly inbound?: IncomingHttpHeaders
}

/** A body and its media type. */
export interface LineRequestBody {
  readonly type: string
  readonly bytes: Buffer
}

/** Why a request to a line failed. */
export interface LineFailure {
  /** The code that the call would get if this were its only request. */
  readonly code: ErrorCode
  /** Whether another line may succeed. */
  readonly retryable: boolean
  /** The cause of the failure, for operators. */
  readonly detail: string | null
  readonly timeoutPhase?: TimeoutPhase
  /** How long the line asked to wait. */
  readonly retryAfterMs?: number | undefined
  /** The member of the request that the line named. */
  readonly param?: string | undefined
  /** The reason that the caller gets, if clients act on its words. */
  readonly reason?: ErrorReason | undefined
}

/** The result of one request to one line. */
export type LineResult =
  /** The line answered with a success status. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly headers: IncomingHttpHeaders
      readonly body: Buffer
    }
  /** The line answered with another status. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly failure: LineFailure
      readonly body: Buffer
    }
  /** There was no complete answer. `sent`: whether the line may have received the request. */
  | { readonly kind: 'failed'; readonly sent: boolean; readonly failure: LineFailure }

/**
 * Sends a request to one line, once. Never rejects. If the signal is aborted, it ends as if the line had not answered.
 */
export type LineSender = (request: LineRequest, signal: AbortSignal) => Promise<LineResult>

/** Receives the record of each exchange with a line, for the traces of calls. */
export type AttemptNote = (attempt: AttemptRecord) => void

/** A line that may serve a call, and its price. */
export interface ChosenLine {
  readonly line: Line
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  readonly price: Price
}
