import { discard } from './attempt.ts'
import type { Fetch, RepeatableRequest } from './repeatable-request.ts'
import { answerFrom, ReplayError } from './replay.ts'
import type { RetryPolicy } from './retry-options.ts'
import { sleep } from './waits.ts'

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
export async function fetchReplayed(
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
