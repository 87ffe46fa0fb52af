import { type ErrorReason, phraseOf, reasonOfCode } from './client-phrases.ts'
import { type ErrorCode, errorRow, isErrorCode, type RetryTier } from './codes.ts'
import { requireNode } from './node-version.ts'

// Here, because almost everything in this package imports this module.
requireNode()

/** The details that one error adds to its row of the error table. */
export interface GatewayErrorOptions {
  /** The message, which callers read: no secrets, and no details that belong in the call log. Defaults to the table's. */
  message?: string | undefined
  /** Why it was refused, from which the message follows in each protocol. A message of your own replaces it. Defaults to the code's. */
  reason?: ErrorReason | undefined
  /**
   * The invalid field in the caller's notation, such as `messages[1].role`. Only parameter errors have it: the codes
   * `invalid_request`, `unsupported_feature` and `context_too_long`. Other codes ignore it. Defaults to none.
   */
  param?: string | undefined
  /** The HTTP status, for what HTTP has a status of its own for, such as 431. Defaults to the table's. */
  status?: 408 | 417 | 431 | undefined
  /** Milliseconds to wait before a retry; `Retry-After` has them in whole seconds, at least 1. Defaults to 1000 on a 429. */
  retryAfterMs?: number | undefined
  /**
   * The value of `error.details`: of `idempotency_key_replayed`, and of threads. In an Anthropic-style envelope, only what
   * has an `error_code`. Defaults to none.
   */
  details?: Readonly<Record<string, unknown>> | undefined
  /** `x-should-retry`, as for a request that is larger than its limit. Defaults to the table's. */
  shouldRetry?: boolean | undefined
  /** Further response headers, such as `x-original-request-id`. Defaults to none. */
  headers?: Readonly<Record<string, string>> | undefined
  /** The underlying error: for the log, never for the caller. Defaults to none. */
  cause?: unknown
  /** Whether the cause has been logged already: then this `internal_error` is not logged again. Defaults to false. */
  foreseen?: boolean | undefined
}

/** Marks the errors of every copy of this package, so that each copy's `instanceof` knows those of the others. */
const GATEWAY_ERROR = Symbol.for('express-model-gateway error')

/**
 * The error type of the toolkit. Middlewares throw it or pass it to `next`; `errorEnvelope` writes its body. Without
 * `errorEnvelope`, Express's own error handler reads `status` and `headers`, NestJS reads `statusCode`, and a handler of your
 * own can use all of them: `res.status(error.status).set(error.headers).send(error.message)`.
 *
 * @throws TypeError if there is no such code, or the options are no object.
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
  /** The reason that the message gives, whose words differ by protocol; undefined for a message of its own. */
  readonly reason: ErrorReason | undefined
  readonly retryAfterMs: number | undefined
  /** Whether the cause has been logged already. */
  readonly foreseen: boolean
  /**
   * The response headers of this error: `retry-after`, `retry-after-ms` and `x-should-retry`, where they apply.
   * `call.refuse` adds the request id.
   */
  readonly headers: Record<string, string>

  /** Returns whether a value is a GatewayError of this copy of the package or of another one. */
  static override [Symbol.hasInstance](value: unknown): value is GatewayError {
    return typeof value === 'object' && value !== null && GATEWAY_ERROR in value
  }

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    checkArguments(code, options)
    const row = errorRow(code)
    const reason = options.message === undefined ? (options.reason ?? reasonOfCode(code)) : undefined
    const text = options.message ?? (reason ? phraseOf(reason, 'openai') : row.message)
    // A text that was cut may end with half a character, which some readers of JSON refuse.
    super(String(text).toWellFormed(), options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status ?? row.status
    this.tier = row.tier
    this.param = PARAMETER_CODES.has(code)
      ? options.param?.slice(0, MAX_PARAM_LENGTH).toWellFormed()
      : undefined
    this.details = options.details
    this.reason = reason
    this.retryAfterMs = waitOf(row.status, options.retryAfterMs)
    this.foreseen = options.foreseen ?? false
    this.headers = {
      ...options.headers,
      ...retryHeaders(this.retryAfterMs, options.shouldRetry ?? row.shouldRetry),
    }
  }

  /** The same as `status`, under the name that http-errors and NestJS read. */
  get statusCode(): number {
    return this.status
  }

  /** True: the message is written for callers, also that of a 5xx. What they must not see is in `cause`. */
  get expose(): true {
    return true
  }

  get [GATEWAY_ERROR](): true {
    return true
  }
}

/** Names the mistake of a handler in JavaScript, which would answer its own 500 without a readable reason. */
function checkArguments(code: unknown, options: unknown): void {
  if (!isErrorCode(code))
    throw new TypeError(
      `GatewayError: there is no code ${JSON.stringify(code)}; write one of the table, such as "invalid_request"`,
    )
  if (typeof options !== 'object' || options === null)
    throw new TypeError(
      'GatewayError: its options must be an object, such as { message: "text is missing." }',
    )
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
