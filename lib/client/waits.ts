/** The longest time that a timer can wait: with a longer one it would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** The delays between attempts whose answers name none, in milliseconds. */
export interface Backoff {
  readonly firstDelayMs: number
  readonly factor: number
  /** The random share that is added to or taken from a delay. */
  readonly jitter: number
}

/** Returns the delay before a retry, numbered from 1. It is random, so that clients do not retry all at once. */
export function backoffMs({ firstDelayMs, factor, jitter }: Backoff, retry: number): number {
  const varied = 1 + jitter * (2 * Math.random() - 1)
  return firstDelayMs * factor ** (retry - 1) * varied
}

/**
 * Returns the wait that an answer names, in milliseconds: `retry-after-ms`, else `Retry-After` in seconds or as an HTTP
 * date. Undefined if there is none, or it is not valid.
 */
export function namedWaitMs(headers: Headers): number | undefined {
  const ms = numberIn(headers.get('retry-after-ms'))
  if (ms !== undefined) return ms
  const text = headers.get('retry-after')
  const seconds = numberIn(text)
  if (seconds !== undefined) return seconds * 1000
  // Date.parse accepts texts that are not dates, such as "-5".
  const date = /^[a-z]+, \d/i.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

function numberIn(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/**
 * Waits for a time.
 *
 * @throws the signal's reason as soon as it is aborted.
 */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(ms, MAX_TIMER_MS),
    )
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/**
 * Returns the value of a promise.
 *
 * @throws the signal's reason if it is aborted first.
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
