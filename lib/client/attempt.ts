import type { Fetch, RepeatableRequest } from './repeatable-request.ts'
import { isWorthRetrying } from './retry-tiers.ts'
import { namedWaitMs } from './waits.ts'

/** The result of sending a request once. */
export type Attempt = Answered | Replayed | Failed

/** An answer, or an error that a retry would not change. */
export interface Answered {
  readonly kind: 'answered'
  readonly response: Response
}

/** The request ran before; its answer is in the call log. */
export interface Replayed {
  readonly kind: 'replayed'
  readonly response: Response
  readonly originalRequestId: string
}

/** The attempt failed before an answer began, and a retry may help. */
export interface Failed {
  readonly kind: 'failed'
  /** Undefined if the connection failed, or broke before the answer was complete. */
  readonly response: Response | undefined
  readonly error: unknown
  readonly code: string | undefined
  /** How long to wait before the next attempt, as the answer says, in milliseconds. */
  readonly namedWaitMs: number | undefined
  /** Whether an earlier attempt with the same key is still running. */
  readonly isKeyInUse: boolean
}

/**
 * Sends a request once.
 *
 * @throws the error of `fetch` if the request must not be sent again: the caller has aborted it, or the gateway could not
 * recognise the repetition.
 */
export async function attempt(fetch: Fetch, request: RepeatableRequest): Promise<Attempt> {
  try {
    const response = await request.send(fetch)
    if (response.status >= 400) return await classify(response)
    await waitForBeginning(response)
    return { kind: 'answered', response }
  } catch (error) {
    // A PATCH has no idempotency key and may have taken effect.
    if (request.signal?.aborted || request.method === 'PATCH') throw error
    return { ...NO_ANSWER, error }
  }
}

const NO_ANSWER = {
  kind: 'failed',
  response: undefined,
  code: undefined,
  namedWaitMs: undefined,
  isKeyInUse: false,
} as const

/** Waits for a whole JSON body, or for the first bytes of a stream, so that an answer that breaks off before can be retried. */
async function waitForBeginning(response: Response): Promise<void> {
  const type = response.headers.get('content-type') ?? ''
  if (/^application\/json\b/i.test(type)) await response.clone().arrayBuffer()
  if (!/^text\/event-stream\b/i.test(type)) return
  const reader = response.clone().body?.getReader()
  await reader?.read()
  // Cancels this copy only. The promise resolves when the other copy is read or cancelled.
  reader?.cancel().catch(() => {})
}

/** Frees the connection of an answer that is not read. */
export function discard(response: Response): void {
  response.body?.cancel().catch(() => {})
}

async function classify(response: Response): Promise<Attempt> {
  const { headers, status } = response
  const { code, originalRequestId } = errorIn(await response.clone().text())
  const original = headers.get('x-original-request-id') ?? originalRequestId
  if (status === 409 && original !== undefined && (code ?? REPLAYED) === REPLAYED) {
    return { kind: 'replayed', response, originalRequestId: original }
  }
  const shouldRetry = headers.get('x-should-retry')
  if (!isWorthRetrying(status, code, shouldRetry)) return { kind: 'answered', response }
  return {
    kind: 'failed',
    response,
    error: undefined,
    code,
    namedWaitMs: namedWaitMs(headers),
    // The Anthropic-style envelope has no code. No other 409 asks for a retry.
    isKeyInUse: status === 409 && (code ?? IN_USE) === IN_USE,
  }
}

const REPLAYED = 'idempotency_key_replayed'
const IN_USE = 'idempotency_key_in_use'

/** Reads an error body of the gateway; returns nothing for any other body, such as a balancer's page. */
function errorIn(text: string): { code?: string; originalRequestId?: string } {
  const error = memberOf(parseJson(text), 'error')
  const code = memberOf(error, 'code')
  const id = memberOf(memberOf(error, 'details'), 'original_request_id')
  return {
    ...(typeof code === 'string' && { code }),
    ...(typeof id === 'string' && { originalRequestId: id }),
  }
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, name)?.value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
