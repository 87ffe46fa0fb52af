import type { ErrorCode } from '../../../lib/core/errors/index.ts'

type Tier = 'never' | 'after_wait' | 'backoff' | 'unstated'

/**
 * The codes as the specification lists them (7.2, 7.3), the one for operators, and `x-should-retry` as it is decided for
 * each: kept apart from the library's table, so that the two are compared.
 */
export const SPEC_CODES: readonly (readonly [ErrorCode, number, Tier, 'true' | 'false' | undefined])[] = [
  ['missing_credential', 401, 'never', 'false'],
  ['invalid_credential', 401, 'never', 'false'],
  ['key_disabled', 403, 'never', 'false'],
  ['key_expired', 403, 'never', 'false'],
  ['key_quota_exhausted', 402, 'never', 'false'],
  ['ip_not_allowed', 403, 'never', 'false'],
  ['model_not_allowed', 403, 'never', 'false'],
  ['role_not_allowed', 403, 'never', 'false'],
  ['invalid_request', 400, 'never', 'false'],
  ['unsupported_feature', 400, 'never', 'false'],
  ['context_too_long', 400, 'never', 'false'],
  ['model_not_found', 404, 'never', 'false'],
  ['request_too_large', 413, 'never', 'false'],
  ['idempotency_key_in_use', 409, 'unstated', 'true'],
  ['idempotency_key_replayed', 409, 'unstated', 'false'],
  ['idempotency_key_reused', 400, 'unstated', 'false'],
  ['insufficient_balance', 402, 'never', 'false'],
  ['billing_unavailable', 503, 'backoff', 'true'],
  ['quota_lease_exhausted', 503, 'backoff', 'true'],
  ['rate_limited', 429, 'after_wait', 'true'],
  ['concurrency_limited', 429, 'after_wait', 'true'],
  ['no_candidate', 503, 'never', 'false'],
  ['all_candidates_failed', 502, 'unstated', undefined],
  ['upstream_timeout', 504, 'backoff', 'true'],
  ['upstream_error', 502, 'backoff', 'true'],
  ['upstream_rate_limited', 429, 'after_wait', 'true'],
  ['upstream_overloaded', 503, 'backoff', 'true'],
  ['circuit_open', 503, 'backoff', 'true'],
  ['empty_completion', 502, 'backoff', 'true'],
  ['content_filtered', 400, 'never', 'false'],
  ['client_closed_request', 499, 'unstated', undefined],
  ['internal_error', 500, 'unstated', undefined],
  ['not_found', 404, 'unstated', undefined],
  ['conflict', 409, 'unstated', 'false'],
  ['region_denied', 403, 'unstated', undefined],
]

/** `error.type` by HTTP status: OpenAI-style, Anthropic-style. */
export const TYPES_BY_STATUS: Readonly<Record<number, readonly [string, string]>> = {
  400: ['invalid_request_error', 'invalid_request_error'],
  401: ['authentication_error', 'authentication_error'],
  402: ['insufficient_quota', 'billing_error'],
  403: ['permission_error', 'permission_error'],
  404: ['not_found_error', 'not_found_error'],
  409: ['invalid_request_error', 'invalid_request_error'],
  413: ['invalid_request_error', 'request_too_large'],
  429: ['rate_limit_error', 'rate_limit_error'],
  499: ['invalid_request_error', 'invalid_request_error'],
  500: ['server_error', 'api_error'],
  502: ['server_error', 'api_error'],
  503: ['server_error', 'overloaded_error'],
  504: ['server_error', 'timeout_error'],
}
