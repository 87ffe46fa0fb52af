/**
 * The retry tiers of spec 7.3, written out once more so that a browser need not load the whole table of errors. A test
 * compares them with that table.
 */
export const RETRY_TIERS = {
  never: [
    'missing_credential',
    'invalid_credential',
    'key_disabled',
    'key_expired',
    'key_quota_exhausted',
    'ip_not_allowed',
    'model_not_allowed',
    'invalid_request',
    'unsupported_feature',
    'context_too_long',
    'model_not_found',
    'request_too_large',
    'insufficient_balance',
    'no_candidate',
    'content_filtered',
  ],
  after_wait: ['rate_limited', 'concurrency_limited', 'upstream_rate_limited'],
  backoff: [
    'billing_unavailable',
    'quota_lease_exhausted',
    'upstream_timeout',
    'upstream_error',
    'upstream_overloaded',
    'circuit_open',
    'empty_completion',
  ],
} as const

const NEVER: ReadonlySet<string> = new Set(RETRY_TIERS.never)
const AGAIN: ReadonlySet<string> = new Set([...RETRY_TIERS.after_wait, ...RETRY_TIERS.backoff])

/** What is sent again where nothing but the status tells (spec 7.3). */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/**
 * Whether an answer is worth sending its request again: by its code, else by `x-should-retry`, else by its status.
 *
 * A code of a tier that retries does not outweigh `x-should-retry: false`: so the gateway marks the one request that can
 * never pass, such as one over its whole limit of tokens.
 */
export function isWorthRetrying(
  status: number,
  code: string | undefined,
  shouldRetry: string | null,
): boolean {
  if (code !== undefined && NEVER.has(code)) return false
  if (shouldRetry === 'false') return false
  if (code !== undefined && AGAIN.has(code)) return true
  return shouldRetry === 'true' || RETRIED_STATUSES.has(status)
}
