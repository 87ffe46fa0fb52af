import { type ErrorCode, errorRow, type RetryTier } from './codes.ts'

/** What one error adds to its row of the error table. */
export interface GatewayErrorOptions {
  /** Replaces the message of the table. Callers read it: no secrets, and no details that belong in the call log. */
  message?: string | undefined
  /**
   * The invalid field in the caller's notation, such as `messages[1].role`. Only parameter errors have it: the codes
   * `invalid_request`, `unsupported_feature` and `context_too_long`. Other codes ignore it.
   */
  param?: string | undefined
  /** Replaces the HTTP status of the table, for what HTTP has a status of its own for, such as 431. */
  status?: 408 | 417 | 431 | undefined
  /** Milliseconds to wait before a retry; `Retry-After` has them in whole seconds, at least 1. */
  retryAfterMs?: number | undefined
  /** The value of `error.details`; only `idempotency_key_replayed` has it. */
  details?: Readonly<Record<string, unknown>> | undefined
  /** Overrides `x-should-retry` of the table, as for a request that is larger than its limit. */
  shouldRetry?: boolean | undefined
  /** Further response headers, such as `x-original-request-id`. */
  headers?: Readonly<Record<string, string>> | undefined
  /** The underlying error: for the log, never for the caller. */
  cause?: unknown
  /** Whether the cause has been logged already, as an outage is: then this `internal_error` is not logged again. */
  foreseen?: boolean | undefined
}

/**
 * The error type of the toolkit. Middlewares throw it or pass it to `next`; `errorEnvelope` writes its body. It has
 * `status` and `headers`, so that Express's own error handler answers correctly if there is no `errorEnvelope`.
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
  /** Whether the cause has been logged already. */
  readonly foreseen: boolean
  /**
   * The response headers of this error: `retry-after`, `retry-after-ms` and `x-should-retry`, where they apply.
   * `call.refuse` adds the request id.
   */
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    const row = errorRow(code)
    super(options.message ?? row.message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status ?? row.status
    this.tier = row.tier
    this.param = PARAMETER_CODES.has(code) ? options.param?.slice(0, MAX_PARAM_LENGTH) : undefined
    this.details = options.details
    this.retryAfterMs = waitOf(row.status, options.retryAfterMs)
    this.foreseen = options.foreseen ?? false
    this.headers = {
      ...options.headers,
      ...retryHeaders(this.retryAfterMs, options.shouldRetry ?? row.shouldRetry),
    }
  }
}

/** The codes that can name a field. */
const PARAMETER_CODES: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'unsupported_feature',
  'context_too_long',
])

/** A param may come from an upstream. */
const MAX_PARAM_LENGTH = 200

/** Returns the wait of an error. Each 429 has one: without a known wait, it is one second. */
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
