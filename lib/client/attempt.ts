import type { Fetch, RepeatableRequest } from './repeatable-request.ts'
import { isWorthRetrying } from './retry-tiers.ts'
import { namedWaitMs } from './waits.ts'

/** What came of sending a request once. */
export type Attempt = Answered | Replayed | Failed

/** The answer, or a refusal that would be the same again. */
export interface Answered {
  readonly kind: 'answered'
  readonly response: Response
}

/** The request has run before; its answer is in the call log. */
export interface Replayed {
  readonly kind: 'replayed'
  readonly response: Response
  readonly originalRequestId: string
}

/** Nothing of an answer was handed over, and sending it again may help. */
export interface Failed {
  readonly kind: 'failed'
  /** Undefined when the connection failed, or broke before the whole answer had come. */
  readonly response: Response | undefined
  readonly error: unknown
  readonly code: string | undefined
  /** What the answer says how long to wait, in milliseconds. */
  readonly namedWaitMs: number | undefined
  /** Whether an earlier attempt is still running. */
  readonly isKeyInUse: boolean
}

/**
 * Sends a request once.
 *
 * @throws the error of `fetch` where sending it again makes no sense: the caller has aborted, or what became of a request
 * that the gateway cannot recognise is not known.
 */
export async function attempt(fetch: Fetch, request: RepeatableRequest): Promise<Attempt> {
  try {
    const response = await request.send(fetch)
    if (response.status >= 400) return await judge(response)
    await hasBegun(response)
    return { kind: 'answered', response }
  } catch (error) {
    // A PATCH carries no key, and may have been done.
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

/**
 * Waits for as much of an answer as can be waited for: all of a JSON body, so that one that breaks off is fetched again
 * instead of handed over, and the first bytes of a stream.
 */
async function hasBegun(response: Response): Promise<void> {
  const type = response.headers.get('content-type') ?? ''
  if (/^application\/json\b/i.test(type)) await response.clone().arrayBuffer()
  if (!/^text\/event-stream\b/i.test(type)) return
  const reader = response.clone().body?.getReader()
  await reader?.read()
  // Ends this copy only; what it resolves to waits for the other.
  reader?.cancel().catch(() => {})
}

/** Frees the connection of an answer that nobody reads. */
export function discard(response: Response): void {
  response.body?.cancel().catch(() => {})
}

async function judge(response: Response): Promise<Attempt> {
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
    // The Anthropic-style envelope has no code; no other 409 asks to be sent again.
    isKeyInUse: status === 409 && (code ?? IN_USE) === IN_USE,
  }
}

const REPLAYED = 'idempotency_key_replayed'
const IN_USE = 'idempotency_key_in_use'

/** What an error body says. Nothing, when it is not the gateway's, such as a balancer's page. */
function errorIn(text: string): { code?: string; originalRequestId?: string } {
  const error = memberOf(parsed(text), 'error')
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
