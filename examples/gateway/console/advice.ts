import type { ErrorCode } from 'express-model-gateway/errors'

/** Advice for each error code: what to look at on the page of the call. */
const ADVICE: Readonly<Record<ErrorCode, string>> = {
  missing_credential: 'The request carried no API key.',
  invalid_credential: 'The request carried a key that this gateway does not know.',
  key_disabled: 'The key was disabled at that time. An operator can enable it.',
  key_expired: 'The key had expired. Use a new one.',
  key_quota_exhausted: 'The quota of the key was used up: see "required" and "available" under Billing.',
  ip_not_allowed: 'The address of the caller is not on the list of the key.',
  model_not_allowed: 'The key may not use this model.',
  role_not_allowed: 'The role of the operator does not include this.',
  invalid_request:
    'The request was not valid. A frequent cause is a model at an endpoint of another kind, such as a video model at /v1/chat/completions.',
  unsupported_feature:
    'No line of the model supports a feature that the request used: see the reason for each line.',
  context_too_long:
    'The input is larger than the context window of the lines: compare the estimated input with the eliminations.',
  model_not_found: 'The gateway does not have this model.',
  request_too_large: 'The body was larger than the limit of this gateway, usually because of an image.',
  idempotency_key_in_use:
    'The first call with this Idempotency-Key had not ended yet. Nothing was charged for this one.',
  idempotency_key_replayed:
    'The first call with this Idempotency-Key ran; its page has the answer. Nothing was charged for this call.',
  idempotency_key_reused: 'The Idempotency-Key was used before, for other content.',
  insufficient_balance: 'The balance was too low: see "required" and "available" under Billing.',
  billing_unavailable:
    'The ledger could not be reached, or did not confirm the charge in time. If there are attempts below, the answer was withheld or cut: see "charged" under Billing.',
  quota_lease_exhausted:
    'This process could get no lease on the account at that time. Nothing was sent to a line.',
  rate_limited: 'A limit was reached: see which one under Limit.',
  concurrency_limited: 'The account had as many calls running as it may have. A stream counts until it ends.',
  no_candidate:
    'No line was left to try. See below which filter removed each line; usually it is the provider constraint of the request.',
  all_candidates_failed: 'Every line that was tried failed: see each attempt below.',
  upstream_timeout: 'A line took too long: the attempt below says which of its clocks ran out.',
  upstream_error: 'A line answered with an error: see its status and detail below.',
  upstream_rate_limited: 'The providers limited the gateway.',
  upstream_overloaded: 'The lines said that they were overloaded.',
  circuit_open:
    'The circuits of the lines were open after failures of earlier calls; they close after a probe succeeds.',
  empty_completion: 'A line answered 200 without any output. Nothing was charged.',
  content_filtered: 'The moderation of a line blocked the content.',
  client_closed_request: 'The caller left before the answer was complete.',
  internal_error: 'The gateway failed. Its log has the error, by this request id.',
  not_found: 'The object does not exist, or belongs to another account.',
  conflict: 'The state of the object did not allow the request.',
  region_denied: 'The account may not be served in the region of this gateway.',
}

/** The error codes of the service, for the filter of the call list. */
export const ERROR_CODES: readonly string[] = Object.keys(ADVICE)

const BY_CODE: ReadonlyMap<string, string> = new Map(Object.entries(ADVICE))

export function adviceOn(code: string | null): string | undefined {
  return code === null ? undefined : BY_CODE.get(code)
}
