/** A timer that fires this late shows that the process stood still: it was stopped, or computed for so long. */
export const STOOD_STILL_MS = 1000

/**
 * Calls `run` when `ms` have passed and everything that had arrived by then was read: an answer does not count as late if
 * only this process was delayed. After a standstill of the process they pass once more, because a thread or another process
 * that is waited for may have stood still with it.
 *
 * @param keepsAlive whether the timer keeps the process alive.
 * @returns a function that cancels the timer.
 */
export function timeLimit(ms: number, run: () => void, keepsAlive = false): () => void {
  let read: NodeJS.Immediate | undefined
  let due = performance.now() + ms
  const timer = setTimeout(() => {
    const stoodStill = performance.now() - due >= STOOD_STILL_MS
    due = Number.POSITIVE_INFINITY
    if (stoodStill) timer.refresh()
    else read = setImmediate(run)
  }, ms)
  if (!keepsAlive) timer.unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(read)
  }
}

const LATE = Symbol('late')

/**
 * Returns the value of a promise, or what `onLate` returns or throws if there is none after `ms`, and in what had arrived
 * by then. The promise is not stopped then.
 *
 * @example
 * const answer = await within(1000, store.find(id), () => undefined)
 */
export async function within<T, Late>(
  ms: number,
  promise: Promise<T>,
  onLate: () => Late,
): Promise<T | Late> {
  let cancel = (): void => {}
  const late = new Promise<typeof LATE>((resolve) => {
    cancel = timeLimit(ms, () => resolve(LATE), true)
  })
  try {
    const value = await Promise.race([promise, late])
    return value === LATE ? onLate() : value
  } finally {
    cancel()
  }
}
