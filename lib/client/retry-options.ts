import { callLogUrl } from './replay.ts'
import type { Backoff } from './waits.ts'

/** Options of `withRetries`. Times are milliseconds. */
export interface RetryOptions {
  /** Attempts in all, the first one included. Defaults to 4. */
  attempts?: number
  /** The delay before the first retry where the answer names none. Defaults to 1000. */
  firstDelayMs?: number
  /** By which each further delay is longer. Defaults to 2. */
  factor?: number
  /** Share by which such a delay varies, either way. Defaults to 0.2. */
  jitter?: number
  /** The longest wait that an answer may ask for; one that asks for more is handed over. Defaults to 60000. */
  longestWaitMs?: number
  /**
   * For how long, from the first such answer on, a request goes on asking beyond `attempts` while its key is still in use.
   * A key whose process was killed is free after 60 s. Defaults to 0.
   */
  keyWaitMs?: number
  /**
   * Whether a body that is a stream is read into memory, so that it can be sent again. Defaults to false: such a request is
   * sent once.
   */
  bufferStreams?: boolean
  /** Makes the key of a POST that has none. Defaults to 128 random bits. */
  newIdempotencyKey?: () => string
  /** Where the entry of a call is read. Defaults to `/v1/calls/{request_id}` beside the request's own path. */
  callLogUrl?: (requestUrl: string, requestId: string) => string
  /** Told of each retry, before its wait. What it throws ends the call. Defaults to nothing. */
  onRetry?: (event: RetryEvent) => void
}

/** A retry that is about to be made. */
export interface RetryEvent {
  readonly method: string
  readonly url: string
  /** Number of the attempt that has failed, from 1. */
  readonly attempt: number
  /** Milliseconds until the next one. */
  readonly delayMs: number
  /** Null when there was no whole answer. */
  readonly status: number | null
  /** `error.code`; null without one. */
  readonly code: string | null
  readonly requestId: string | null
  /** What `fetch` threw. */
  readonly error: unknown
  readonly idempotencyKey: string | null
}

/** Options with their defaults. */
export interface RetryPolicy extends Backoff, Required<Omit<RetryOptions, 'onRetry'>> {
  readonly firstDelayMs: number
  readonly factor: number
  readonly jitter: number
  readonly onRetry: ((event: RetryEvent) => void) | undefined
}

/** @throws TypeError when an option is unusable. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  const policy: RetryPolicy = {
    attempts: options.attempts ?? 4,
    firstDelayMs: options.firstDelayMs ?? 1000,
    factor: options.factor ?? 2,
    jitter: options.jitter ?? 0.2,
    longestWaitMs: options.longestWaitMs ?? 60_000,
    keyWaitMs: options.keyWaitMs ?? 0,
    bufferStreams: options.bufferStreams ?? false,
    newIdempotencyKey: options.newIdempotencyKey ?? randomKey,
    callLogUrl: options.callLogUrl ?? callLogUrl,
    onRetry: options.onRetry,
  }
  if (!Number.isInteger(policy.attempts) || policy.attempts < 1)
    throw new TypeError('withRetries: "attempts" must be a whole number, at least 1')
  if (!(policy.factor >= 1)) throw new TypeError('withRetries: "factor" must be at least 1')
  if (!(policy.jitter >= 0 && policy.jitter <= 1))
    throw new TypeError('withRetries: "jitter" must be from 0 to 1')
  for (const name of ['firstDelayMs', 'longestWaitMs', 'keyWaitMs'] as const) {
    if (!(policy[name] >= 0)) throw new TypeError(`withRetries: "${name}" must be milliseconds, at least 0`)
  }
  return policy
}

/** Not `crypto.randomUUID`, which a page has only behind https. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `retry-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
