import { timeLimit } from './time-limit.ts'

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
