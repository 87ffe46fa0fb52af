import { type Answered, attempt, discard, type Failed, type Replayed } from './attempt.ts'
import { type Fetch, type RepeatableRequest, repeatableRequest } from './repeatable-request.ts'
import { answerFrom, ReplayError } from './replay.ts'
import { type RetryOptions, type RetryPolicy, retryPolicy } from './retry-options.ts'
import { backoffMs, sleep } from './waits.ts'

/**
 * Returns a `fetch` that retries by the retry tiers: by the code of an error, else by `x-should-retry`, else by the status.
 * It waits as long as `Retry-After` says, else 1 s, doubled each time, ± 20 %, and makes at most 4 attempts. It retries
 * `empty_completion`, which is not billed, at once. It does not retry once it has returned the beginning of an answer.
 *
 * All attempts of a POST have the same `Idempotency-Key`, the caller's or a new one. So a request whose answer was lost does
 * not run and is not billed again: its answer is fetched from the call log.
 *
 * @param fetch the function that sends requests.
 * @returns a function to use in its place. It resolves with the last answer, whatever its status. It rejects with the error
 * of `fetch` if there was no answer, with a `ReplayError` if a request ran and its answer is not available, and with the
 * signal's reason if it is aborted, also during a wait.
 * @throws TypeError if an option is invalid.
 * @example
 * const openai = new OpenAI({ apiKey, baseURL, fetch: withRetries(fetch), maxRetries: 0 })
 */
export function withRetries(fetch: Fetch, options: RetryOptions = {}): Fetch {
  if (typeof fetch !== 'function')
    throw new TypeError('withRetries: the first argument must be a fetch function, such as globalThis.fetch')
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

/** @throws the error that `fetch` threw in the last attempt. */
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
    const mayRetry = made < policy.attempts || (result.isKeyInUse && keyWaited < policy.keyWaitMs)
    if (!mayRetry || !request.isRepeatable || delayMs > policy.longestWaitMs) return lastAnswer(result)
    await policy.onRetry?.({
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
    await sleep(delayMs, request.signal)
  }
}

function delayOf({ code, namedWaitMs }: Failed, made: number, policy: RetryPolicy): number {
  if (namedWaitMs !== undefined) return namedWaitMs
  return code === 'empty_completion' ? 0 : Math.min(backoffMs(policy, made), policy.longestWaitMs)
}

function lastAnswer({ response, error }: Failed): Answered {
  if (response) return { kind: 'answered', response }
  throw error
}

/** The headers of the request that are also sent to the call log. */
const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key']

/** The waits between look-ups. Entries are written within a second. */
const LOOK_UP_WAITS_MS = [100, 400, 1600]

/**
 * Fetches the answer of a request that ran before from the call log.
 *
 * @param read a `fetch` with retries.
 * @throws {ReplayError} if the call log does not have the complete answer.
 */
async function fetchReplayed(
  read: Fetch,
  { url, headers, signal }: RepeatableRequest,
  originalRequestId: string,
  policy: RetryPolicy,
): Promise<Response> {
  const unreadable = (cause: unknown): never => {
    if (signal?.aborted) throw cause
    throw new ReplayError('unreadable', originalRequestId, { cause })
  }
  const entryUrl = policy.callLogUrl(url, originalRequestId)
  const own = new Headers()
  for (const name of CREDENTIALS) {
    const value = headers.get(name)
    if (value !== null) own.set(name, value)
  }
  for (const waitMs of [...LOOK_UP_WAITS_MS, undefined]) {
    const response = await read(entryUrl, { headers: own, signal: signal ?? null }).catch(unreadable)
    if (response.ok) return answerFrom(await response.json().catch(unreadable), originalRequestId)
    discard(response)
    if (response.status !== 404) unreadable(new Error(`GET ${entryUrl} answered ${response.status}`))
    if (waitMs !== undefined) await sleep(waitMs, signal)
  }
  throw new ReplayError('not_found', originalRequestId)
}
