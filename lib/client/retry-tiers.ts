/**
 * The error codes by retry tier. They are repeated here so that browsers need not load the table of errors; a test compares
 * the two.
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
    'role_not_allowed',
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
const RETRYABLE: ReadonlySet<string> = new Set([...RETRY_TIERS.after_wait, ...RETRY_TIERS.backoff])

/** The statuses that are retried if there is neither a code nor `x-should-retry`. */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/**
 * Whether to send the request of an answer again: by its code, else by `x-should-retry`, else by its status.
 *
 * `x-should-retry: false` wins over a code that is otherwise retried: the gateway sends it for a request that can never
 * succeed, such as one that is larger than its limit of tokens.
 */
export function isWorthRetrying(
  status: number,
  code: string | undefined,
  shouldRetry: string | null,
): boolean {
  if (code !== undefined && NEVER.has(code)) return false
  if (shouldRetry === 'false') return false
  if (code !== undefined && RETRYABLE.has(code)) return true
  return shouldRetry === 'true' || RETRIED_STATUSES.has(status)
}
