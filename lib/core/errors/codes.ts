import { phraseOf } from './client-phrases.ts'

/**
 * Whether and when to send the whole request again.
 *
 * - `never`: the configuration or the request is wrong; a retry changes nothing.
 * - `after_wait`: wait the seconds of `Retry-After`, then retry.
 * - `backoff`: retry with exponential backoff, 1 s × 2, at most 3 times, ±20 % jitter.
 * - `unstated`: the code has no tier.
 */
export type RetryTier = 'never' | 'after_wait' | 'backoff' | 'unstated'

/** One row of the error table. */
export interface ErrorRow {
  /** HTTP status of the answer. */
  readonly status: number
  readonly tier: RetryTier
  /** The value of `x-should-retry`; absent if the client shall decide by its own rule. */
  readonly shouldRetry?: boolean
  /** The cause, and what to do next. Lines, prices and balances belong in the call log, not here. */
  readonly message: string
}

const never = { tier: 'never', shouldRetry: false } as const
const afterWait = { tier: 'after_wait', shouldRetry: true } as const
const backoff = { tier: 'backoff', shouldRetry: true } as const
const unstated = { tier: 'unstated' } as const

/**
 * All error codes of the service. Envelopes and headers are derived from this table. `client/retry-tiers.ts`,
 * `README.md` and the console's `advice.ts` repeat it; tests and types compare them.
 *
 * @example
 * const { status, tier } = ERROR_CODES.rate_limited // 429, 'after_wait'
 */
export const ERROR_CODES = {
  missing_credential: {
    status: 401,
    ...never,
    message: 'No API key was sent. Send it as "Authorization: Bearer <key>" or as "x-api-key: <key>".',
  },
  invalid_credential: {
    status: 401,
    ...never,
    message: 'The API key is not valid here. Check that it was copied whole and belongs to this gateway.',
  },
  key_disabled: {
    status: 403,
    ...never,
    message: 'This API key is disabled. Ask its owner to enable it, or use another key.',
  },
  key_expired: { status: 403, ...never, message: 'This API key has expired. Create a new key.' },
  key_quota_exhausted: {
    status: 402,
    ...never,
    message: 'The quota of this API key is used up. Raise its quota, or use another key.',
  },
  ip_not_allowed: {
    status: 403,
    ...never,
    message:
      "This address is not on the API key's allow-list. Add it to the list, or call from an allowed address.",
  },
  model_not_allowed: {
    status: 403,
    ...never,
    message: 'This API key may not use the requested model. GET /v1/models lists the models it may use.',
  },
  role_not_allowed: {
    status: 403,
    ...never,
    message:
      'Your role may not do this. Ask an operator with the role "admin" to do it, or for another role.',
  },
  invalid_request: {
    status: 400,
    ...never,
    message: 'The request is not valid. Correct it and send it again.',
  },
  unsupported_feature: {
    status: 400,
    ...never,
    message:
      'The requested model does not support a feature that this request uses. Drop it, or choose another model.',
  },
  context_too_long: {
    status: 400,
    ...never,
    message: phraseOf({ kind: 'context' }, 'openai'),
  },
  model_not_found: {
    status: 404,
    ...never,
    message:
      'The model does not exist or was taken offline. GET /v1/models lists the models available to you.',
  },
  request_too_large: {
    status: 413,
    ...never,
    message: 'The request body is too large. Send large images by URL instead of inline base64.',
  },
  idempotency_key_in_use: {
    status: 409,
    tier: 'unstated',
    shouldRetry: true,
    message:
      'The previous request with this Idempotency-Key has not finished. Retry with the same key in a few seconds; it is not charged twice.',
  },
  idempotency_key_replayed: {
    status: 409,
    tier: 'unstated',
    shouldRetry: false,
    message:
      'A request with this Idempotency-Key already ran; nothing was run or charged this time. Fetch the original answer from the call log by the original request id.',
  },
  idempotency_key_reused: {
    status: 400,
    tier: 'unstated',
    shouldRetry: false,
    message: 'This Idempotency-Key was used with other content. Use a new key for a changed request.',
  },
  insufficient_balance: {
    status: 402,
    ...never,
    message: phraseOf({ kind: 'credit' }, 'openai'),
  },
  billing_unavailable: {
    status: 503,
    ...backoff,
    message: 'Billing is temporarily unavailable; nothing was run. Retry with backoff.',
  },
  quota_lease_exhausted: {
    status: 503,
    ...backoff,
    message: "Running calls hold the account's money at the moment. Retry with backoff.",
  },
  rate_limited: {
    status: 429,
    ...afterWait,
    message:
      'A rate limit was reached. Wait the seconds of Retry-After, then retry; sending sooner prolongs the wait.',
  },
  concurrency_limited: {
    status: 429,
    ...afterWait,
    message:
      'Too many requests of this account are running. Wait the seconds of Retry-After, or let running streams end first.',
  },
  no_candidate: {
    status: 503,
    ...never,
    message:
      'No upstream line is left for this request, most often because its provider constraint is too strict. The routing trace in the call log says what removed each line.',
  },
  all_candidates_failed: {
    status: 502,
    ...unstated,
    message:
      'Every upstream line that was tried failed. The routing trace in the call log shows each attempt.',
  },
  upstream_timeout: {
    status: 504,
    ...backoff,
    message: 'The upstream did not answer in time. Retry with backoff.',
  },
  upstream_error: {
    status: 502,
    ...backoff,
    message: 'The upstream returned an error. Retry with backoff; details are in the call log.',
  },
  upstream_rate_limited: {
    status: 429,
    ...afterWait,
    message:
      'A rate limit of the upstream was reached for this model. Wait the seconds of Retry-After, then retry.',
  },
  upstream_overloaded: {
    status: 503,
    ...backoff,
    message: 'The upstream is overloaded. Retry with backoff.',
  },
  circuit_open: {
    status: 503,
    ...backoff,
    message: 'The upstream failed repeatedly, so it is not called for a moment. Retry with backoff.',
  },
  empty_completion: {
    status: 502,
    ...backoff,
    message: 'The model returned no output. This call is not billed; retry at once if you like.',
  },
  content_filtered: {
    status: 400,
    ...never,
    message: 'The content was blocked by moderation. Change the content before sending it again.',
  },
  client_closed_request: {
    status: 499,
    ...unstated,
    message: 'The client closed the connection before the answer was complete.',
  },
  internal_error: {
    status: 500,
    ...unstated,
    message: 'An internal error occurred. Report it with the request id of this response.',
  },
  not_found: {
    status: 404,
    ...unstated,
    message: 'This resource does not exist. Check the method, the path and the id.',
  },
  conflict: {
    status: 409,
    tier: 'unstated',
    shouldRetry: false,
    message: "The resource's present state does not allow this. Read it again before you retry.",
  },
  region_denied: {
    status: 403,
    ...unstated,
    message: 'This request may not be processed in this region. Use a region that your account allows.',
  },
} as const satisfies Record<string, ErrorRow>

/** A stable error identifier for programs. */
export type ErrorCode = keyof typeof ERROR_CODES

/** All codes, in the order of the table. */
export const ERROR_CODE_NAMES = Object.keys(ERROR_CODES) as readonly ErrorCode[]

/** Returns the row of a code. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERROR_CODES[code]
}

/** Whether a value is an error code. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value)
}
