import { type Answered, attempt, discard, type Failed, type Replayed } from './attempt.ts'
import { type Fetch, type RepeatableRequest, repeatableRequest } from './repeatable-request.ts'
import { fetchReplayed } from './replayed-answer.ts'
import { type RetryOptions, type RetryPolicy, retryPolicy } from './retry-options.ts'
import { backoffMs, pause } from './waits.ts'

/**
 * A `fetch` that retries as the tiers of spec 7.3 say: by the code of an error, else by `x-should-retry`, else by the
 * status. It waits as `Retry-After` says, else 1 s × 2 each time ± 20 %, and gives up after 4 attempts; `empty_completion`,
 * which is not billed, is retried at once. Nothing is sent again once its answer has begun to be handed over.
 *
 * A POST carries an `Idempotency-Key`, the caller's own or a new one, in all its attempts. So a request whose answer was
 * lost is not run and billed again: its answer is fetched from the call log.
 *
 * @param fetch what sends requests.
 * @returns a function to be used in place of it. It resolves with the last answer, whatever its status, and rejects with the
 * error of `fetch` when there was none, with a `ReplayError` when a request has run and its answer cannot be had, and
 * with the signal's reason when it is aborted, in a wait too.
 * @throws TypeError when an option is unusable.
 * @example
 * const openai = new OpenAI({ apiKey, baseURL, fetch: withRetries(fetch), maxRetries: 0 })
 */
export function withRetries(fetch: Fetch, options: RetryOptions = {}): Fetch {
  if (typeof fetch !== 'function') throw new TypeError('withRetries: the first argument must be a fetch')
  const policy = retryPolicy(options)
  const read: Fetch = async (input, init) => {
    const { response } = await sendRepeatedly(fetch, await repeatableRequest(input, init, policy), policy)
    return response
  }
  return async function fetchWithRetries(input, init) {
    const request = await repeatableRequest(input, init, policy)
    const result = await sendRepeatedly(fetch, request, policy)
    if (result.kind === 'answered') return result.response
    discard(result.response)
    return fetchReplayed(read, request, result.originalRequestId, policy)
  }
}

/** @throws what `fetch` threw in the last attempt. */
async function sendRepeatedly(
  fetch: Fetch,
  request: RepeatableRequest,
  policy: RetryPolicy,
): Promise<Answered | Replayed> {
  let inUseSince: number | undefined
  for (let made = 1; ; made++) {
    const result = await attempt(fetch, request)
    if (result.kind !== 'failed') return result
    if (result.isKeyInUse) inUseSince ??= performance.now()
    const delayMs = delayOf(result, made, policy)
    const keyWaited = inUseSince === undefined ? Number.POSITIVE_INFINITY : performance.now() - inUseSince
    const goesOn = made < policy.attempts || (result.isKeyInUse && keyWaited < policy.keyWaitMs)
    if (!goesOn || !request.hasLastingBody || delayMs > policy.longestWaitMs) return handOver(result)
    policy.onRetry?.({
      method: request.method,
      url: request.url,
      attempt: made,
      delayMs,
      status: result.response?.status ?? null,
      code: result.code ?? null,
      requestId: result.response?.headers.get('x-request-id') ?? null,
      error: result.error,
      idempotencyKey: request.headers.get('idempotency-key'),
    })
    if (result.response) discard(result.response)
    await pause(delayMs, request.signal)
  }
}

function delayOf({ code, namedWaitMs }: Failed, made: number, policy: RetryPolicy): number {
  if (namedWaitMs !== undefined) return namedWaitMs
  return code === 'empty_completion' ? 0 : Math.min(backoffMs(policy, made), policy.longestWaitMs)
}

function handOver({ response, error }: Failed): Answered {
  if (response) return { kind: 'answered', response }
  throw error
}
