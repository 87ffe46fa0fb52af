/** How long to wait where an answer does not say. Milliseconds. */
export interface Backoff {
  readonly firstDelayMs: number
  readonly factor: number
  /** Share by which a delay varies either way. */
  readonly jitter: number
}

/** The delay before a retry, from 1. Each is different, so that clients that failed together do not come back together. */
export function backoffMs({ firstDelayMs, factor, jitter }: Backoff, retry: number): number {
  const varied = 1 + jitter * (2 * Math.random() - 1)
  return firstDelayMs * factor ** (retry - 1) * varied
}

/**
 * The wait that an answer names: `retry-after-ms`, else `Retry-After` in seconds or as an HTTP date. Undefined when it
 * names none, or one that cannot be read.
 */
export function namedWaitMs(headers: Headers): number | undefined {
  const ms = numberIn(headers.get('retry-after-ms'))
  if (ms !== undefined) return ms
  const text = headers.get('retry-after')
  const seconds = numberIn(text)
  if (seconds !== undefined) return seconds * 1000
  // Of what is no date Date.parse makes one, such as of "-5".
  const date = /^[a-z]+, \d/i.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

function numberIn(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/**
 * Waits.
 *
 * @throws the signal's reason as soon as it is aborted.
 */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/**
 * What a promise comes to.
 *
 * @throws the signal's reason if that is aborted first.
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
