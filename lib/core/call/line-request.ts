import type { IncomingHttpHeaders } from 'node:http'
import type { Line, Price } from '../catalog/index.ts'
import type { ErrorCode } from '../errors/index.ts'
import type { AttemptRecord, TimeoutPhase } from './parts.ts'

/** What is sent to a line. Its credentials and its own headers are added on the way. */
export interface LineRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query behind the line's base URL, such as `/videos`. */
  readonly path: string
  readonly body?: LineRequestBody | undefined
}

/** A body and its media type. */
export interface LineRequestBody {
  readonly type: string
  readonly bytes: Buffer
}

/** Why a request to a line came to nothing. */
export interface LineFailure {
  /** The code that the call would have if it hung on this request alone. */
  readonly code: ErrorCode
  /** Whether another line may do better. */
  readonly retryable: boolean
  /** For the operator: what happened. */
  readonly detail: string | null
  readonly timeoutPhase?: TimeoutPhase
  /** How long the line asked to be left alone. */
  readonly retryAfterMs?: number | undefined
  /** The member of the request that the line objected to. */
  readonly param?: string | undefined
}

/** What came of one request to one line. */
export type LineResult =
  /** With a status of success. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly headers: IncomingHttpHeaders
      readonly body: Buffer
    }
  /** With another status. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly failure: LineFailure
      readonly body: Buffer
    }
  /** No whole answer came. `sent`: whether the line may have seen the request. */
  | { readonly kind: 'failed'; readonly sent: boolean; readonly failure: LineFailure }

/** Sends a request to one line, once. Never rejects; ends when the signal does, as if the line had not answered. */
export type LineSender = (request: LineRequest, signal: AbortSignal) => Promise<LineResult>

/** Is told of each exchange with a line, for the traces of the calls that wanted it. */
export type AttemptNote = (attempt: AttemptRecord) => void

/** A line that may serve a call, and at what price. */
export interface ChosenLine {
  readonly line: Line
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  readonly price: Price
}
