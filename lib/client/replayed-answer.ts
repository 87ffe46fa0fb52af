import { discard } from './attempt.ts'
import type { Fetch, RepeatableRequest } from './repeatable-request.ts'
import { answerFrom, ReplayError } from './replay.ts'
import type { RetryPolicy } from './retry-options.ts'
import { pause } from './waits.ts'

/** What the read of the call log carries of the request whose answer it fetches. */
const CREDENTIALS = ['authorization', 'x-api-key']

/** Entries are there within a second. */
const ENTRY_WAITS_MS = [100, 400, 1600]

/**
 * Fetches the answer of a request that has run before from the call log.
 *
 * @param read a `fetch` with retries.
 * @throws {ReplayError} when the call log does not have the whole answer.
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
  for (const waitMs of [...ENTRY_WAITS_MS, undefined]) {
    const response = await read(entryUrl, { headers: own, signal: signal ?? null }).catch(unreadable)
    if (response.ok) return answerFrom(await response.json().catch(unreadable), originalRequestId)
    discard(response)
    if (response.status !== 404) unreadable(new Error(`GET ${entryUrl} answered ${response.status}`))
    if (waitMs !== undefined) await pause(waitMs, signal)
  }
  throw new ReplayError('not_found', originalRequestId)
}
