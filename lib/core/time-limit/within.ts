const LATE = Symbol('late')

/**
 * Returns the value of a promise, or what `onLate` returns or throws if there is none after `ms`. The promise is not
 * stopped then.
 *
 * @example
 * const answer = await within(1000, store.find(id), () => undefined)
 */
export async function within<T, Late>(
  ms: number,
  promise: Promise<T>,
  onLate: () => Late,
): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, ms, LATE)
  })
  try {
    const value = await Promise.race([promise, late])
    return value === LATE ? onLate() : value
  } finally {
    clearTimeout(timer)
  }
}
