import type { OpenCall } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import type { IdempotencyRecord } from '../../core/idempotency/index.ts'

/** The Retry-After of refusals that end soon. */
const RETRY_MS = 2000

/** Returns the refusal of a key that belongs to another call, as in the table of the README. */
export function refuseFor(call: OpenCall, record: IdempotencyRecord, fingerprint: string): GatewayError {
  if (record.fingerprint !== fingerprint) return call.refuse('idempotency_key_reused')
  if (record.state === 'running') return call.refuse('idempotency_key_in_use', { retryAfterMs: RETRY_MS })
  return call.refuse('idempotency_key_replayed', {
    // Without a call log there is nowhere to fetch it from.
    ...(call.entryBy === null && {
      message: 'A request with this Idempotency-Key already ran; nothing was run this time.',
    }),
    details: { original_request_id: record.owner },
    headers: { 'x-original-request-id': record.owner },
  })
}

/** Returns the refusal of a key that the store could not check. The request is not run. */
export function refuseUnchecked(call: OpenCall, cause: unknown): GatewayError {
  return call.refuse('internal_error', {
    message:
      'The Idempotency-Key could not be checked, so nothing was run. Retry with the same key in a few seconds.',
    foreseen: true,
    cause,
  })
}

/** Returns the error of a call that was stopped for so long that another call may have its key. */
export function refuseLost(call: OpenCall): GatewayError {
  return call.refuse('idempotency_key_in_use', {
    message:
      'This request took so long that its Idempotency-Key expired. Retry with the same key in a few seconds; it is not charged twice.',
    retryAfterMs: RETRY_MS,
  })
}

/** Returns the error of a call whose completion the store did not confirm. Its answer is not sent as a success. */
export function refuseUnrecorded(call: OpenCall, cause: unknown): GatewayError {
  return call.refuse('internal_error', {
    message:
      'The request ran, but that could not be recorded under its Idempotency-Key. Retry with the same key in a few seconds; it is not run or charged twice.',
    foreseen: true,
    cause,
  })
}
