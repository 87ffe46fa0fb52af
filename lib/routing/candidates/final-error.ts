import type { RequestBody } from '../../core/call/index.ts'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { THREAD_FAULTS, threadDetails } from '../../core/errors/thread-details.ts'
import { isJsonObject } from '../../core/json/index.ts'
import type { Failure } from '../attempt/failure.ts'

/** Codes that the call gets if every attempt ended with the same one. */
const SHARED: ReadonlySet<ErrorCode> = new Set([
  'upstream_timeout',
  'upstream_rate_limited',
  'upstream_overloaded',
  'empty_completion',
  'request_too_large',
])

/**
 * Returns the error of a call after its last attempt: the code of that attempt if it was the only one or ruled out
 * others, a code that all attempts share, or else `all_candidates_failed`.
 *
 * @param restMs the shortest rest of the lines that were not tried because they rest.
 */
export function finalErrorOf(failures: readonly Failure[], body: RequestBody, restMs?: number): GatewayError {
  const last = failures.at(-1) as Failure
  if (!last.retryable) return finalRefusal(last, body)
  const agreed =
    failures.length === 1 || (SHARED.has(last.code) && failures.every(({ code }) => code === last.code))
  if (!agreed) return new GatewayError('all_candidates_failed')
  return new GatewayError(last.code, { retryAfterMs: shortestWait(failures, restMs) })
}

function shortestWait(failures: readonly Failure[], restMs = Infinity): number | undefined {
  const waits = failures.flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]))
  return waits.length > 0 ? Math.min(...waits, restMs) : undefined
}

/** The refusal names only the member, and only if the caller sent it; the upstream's text stays in the call log. */
function finalRefusal(failure: Failure, body: RequestBody): GatewayError {
  const param = failure.param !== undefined && isOwnMember(failure.param, body) ? failure.param : undefined
  if (failure.code === 'not_found')
    return new GatewayError('not_found', { param, message: goneMessage(param) })
  const { reason } = failure
  if (failure.code !== 'invalid_request') return new GatewayError(failure.code, { reason })
  return new GatewayError('invalid_request', {
    param,
    reason,
    details: threadDetailsOf(failure, body),
    message: reason
      ? undefined
      : `The upstream does not accept ${param ?? 'a parameter of this request'}. The call log names its reason.`,
  })
}

/** Returns what a client needs to know to go on if the thread is at fault; a line may not know threads at all. */
function threadDetailsOf({ error, param }: Failure, { json }: RequestBody) {
  if (!error || !isJsonObject(json.thread)) return undefined
  const fault = THREAD_FAULTS.find((known) => known === error.code)
  if (fault !== undefined) return threadDetails(fault)
  const isRefused = param === 'thread' || /^\W*thread\b[\w.]*: /.test(error.message)
  return isRefused ? threadDetails('thread_unsupported_request') : undefined
}

/** Returns the message of a missing previous response; undefined for the default message of `not_found`. */
function goneMessage(param: string | undefined): string | undefined {
  if (param !== 'previous_response_id') return undefined
  return 'The previous response is not stored any more. Send the conversation as input instead.'
}

function isOwnMember(param: string, { json }: RequestBody): boolean {
  const root = /^[\w-]{1,64}(?=$|[.[])/.exec(param)?.[0]
  return root !== undefined && param.length <= 200 && /^[\w.[\]-]+$/.test(param) && Object.hasOwn(json, root)
}
