import { type ErrorCode, errorRow, type RetryTier } from './codes.ts'

/** What one refusal or failure adds to its row of the error table. */
export interface GatewayErrorOptions {
  /** Replaces the table's text. Goes to the caller: nothing that spec 2.5 keeps for the call log, no secret. */
  message?: string | undefined
  /** Name of the offending field in the caller's notation, such as `messages[1].role`; parameter errors only. */
  param?: string | undefined
  /** Milliseconds after which a retry makes sense; becomes `Retry-After` (whole seconds, at least 1). */
  retryAfterMs?: number | undefined
  /** `error.details`; the spec has it on `idempotency_key_replayed` only. */
  details?: Readonly<Record<string, unknown>> | undefined
  /** Overrides the table's `x-should-retry`, as for a request that can never pass its limit. */
  shouldRetry?: boolean | undefined
  /** Further response headers, such as `x-original-request-id`. */
  headers?: Readonly<Record<string, string>> | undefined
  /** What went wrong inside: for the log, never for the caller. */
  cause?: unknown
  /** The operator is told already, such as of an outage: an `internal_error` that is not logged each time. */
  foreseen?: boolean | undefined
}

/**
 * The one error type of the toolkit. Thrown (or passed to `next`) by every middleware, worded by `errorEnvelope`.
 * It carries `status` and `headers`, so that a middleware mounted alone in a plain Express app answers rightly
 * through Express's own error handler.
 *
 * @example
 * throw new GatewayError('invalid_request', { param: 'messages[1].role', message: 'Unknown role.' })
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly status: number
  readonly tier: RetryTier
  readonly param: string | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly retryAfterMs: number | undefined
  /** Whether the operator is told already. */
  readonly foreseen: boolean
  /**
   * Response headers of this error: `retry-after`, `retry-after-ms`, `x-should-retry` where they apply. A call that
   * is refused adds its request id.
   */
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    const row = errorRow(code)
    super(options.message ?? row.message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = row.status
    this.tier = row.tier
    this.param = options.param
    this.details = options.details
    this.retryAfterMs = waitOf(row.status, options.retryAfterMs)
    this.foreseen = options.foreseen ?? false
    this.headers = {
      ...options.headers,
      ...retryHeaders(this.retryAfterMs, options.shouldRetry ?? row.shouldRetry),
    }
  }
}

/** Every 429 tells how long to wait, even where nobody knows better than the minimum (spec 8.2). */
function waitOf(status: number, retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return status === 429 ? 1000 : undefined
  return Math.max(1, Math.ceil(retryAfterMs))
}

function retryHeaders(
  retryAfterMs: number | undefined,
  shouldRetry: boolean | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (retryAfterMs !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
    headers['retry-after-ms'] = String(retryAfterMs)
  }
  if (shouldRetry !== undefined) headers['x-should-retry'] = String(shouldRetry)
  return headers
}
