import { callLogUrl } from './replay.ts'
import type { Backoff } from './waits.ts'

/** Options of `withRetries`. Times are milliseconds. */
export interface RetryOptions {
  /** Most attempts, including the first. Defaults to 4. */
  attempts?: number
  /** The delay before the first retry if the answer names none. Defaults to 1000. */
  firstDelayMs?: number
  /** The factor between one delay and the next. Defaults to 2. */
  factor?: number
  /** The random share that is added to or taken from a delay. Defaults to 0.2. */
  jitter?: number
  /** The longest wait to accept from an answer; an answer that asks for more is returned. Defaults to 60000. */
  longestWaitMs?: number
  /**
   * How long to retry beyond `attempts` while the key is still in use, from the first such answer on. A key whose process
   * was killed is free after 60 s. Defaults to 0.
   */
  keyWaitMs?: number
  /**
   * Whether to read a stream body into memory, so that it can be sent again. Defaults to false: a request with a stream
   * body is sent only once.
   */
  bufferStreams?: boolean
  /** Returns the key for a POST that has none. Defaults to 128 random bits. */
  newIdempotencyKey?: () => string
  /** Returns the URL of a call log entry. Defaults to `/v1/calls/{request_id}` beside the request's path. */
  callLogUrl?: (requestUrl: string, requestId: string) => string
  /** Called before the wait of each retry. A promise is awaited. If it throws or rejects, the call ends with that error. Defaults to nothing. */
  onRetry?: (event: RetryEvent) => unknown
}

/** A retry that is about to begin. */
export interface RetryEvent {
  readonly method: string
  readonly url: string
  /** The number of the failed attempt, from 1. */
  readonly attempt: number
  /** Milliseconds until the next attempt. */
  readonly delayMs: number
  /** Null if there was no complete answer. */
  readonly status: number | null
  /** The value of `error.code`, if there is one. */
  readonly code: string | null
  readonly requestId: string | null
  /** The error that `fetch` threw. */
  readonly error: unknown
  readonly idempotencyKey: string | null
}

/** The options with their defaults filled in. */
export interface RetryPolicy extends Backoff, Required<Omit<RetryOptions, 'onRetry'>> {
  readonly firstDelayMs: number
  readonly factor: number
  readonly jitter: number
  readonly onRetry: RetryOptions['onRetry']
}

/** @throws TypeError if an option is invalid. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  checkOptions(options)
  return {
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
}

type OptionRule = readonly [be: string, accepts: (value: unknown) => boolean]

function aNumber(be: string, least: number, most = Number.POSITIVE_INFINITY): OptionRule {
  return [be, (value) => typeof value === 'number' && value >= least && value <= most]
}

const MILLISECONDS = aNumber('milliseconds, at least 0', 0)
const A_FUNCTION: OptionRule = ['a function', (value) => typeof value === 'function']

const RULES: { readonly [Name in keyof Required<RetryOptions>]: OptionRule } = {
  attempts: ['a whole number, at least 1', (value) => Number.isInteger(value) && Number(value) >= 1],
  firstDelayMs: MILLISECONDS,
  factor: aNumber('a number, at least 1', 1),
  jitter: aNumber('a number from 0 to 1', 0, 1),
  longestWaitMs: MILLISECONDS,
  keyWaitMs: MILLISECONDS,
  bufferStreams: ['true or false', (value) => typeof value === 'boolean'],
  newIdempotencyKey: A_FUNCTION,
  callLogUrl: A_FUNCTION,
  onRetry: A_FUNCTION,
}

/** Checks options as the factories of the gateway do; this folder loads nothing of theirs, for browsers. */
function checkOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError('withRetries: its options must be an object, such as { attempts: 4 }')
  const rules: Readonly<Record<string, OptionRule>> = RULES
  for (const [name, value] of Object.entries(options)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (!rule)
      throw new TypeError(
        `withRetries: there is no option "${name}"; its options are ${Object.keys(rules).join(', ')}`,
      )
    const [be, accepts] = rule
    if (value !== undefined && !accepts(value)) throw new TypeError(`withRetries: "${name}" must be ${be}`)
  }
}

/** Returns a random key. `crypto.randomUUID` would need a page served over HTTPS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `retry-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
