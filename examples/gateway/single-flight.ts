/**
 * Returns a function whose concurrent calls share one run of `find` and its result.
 *
 * @param restMs for how long later calls share the result, too, by the time that the run took; they share no failure.
 *   Defaults to none.
 */
export function singleFlight<T>(
  find: () => Promise<T>,
  restMs: (tookMs: number) => number = () => 0,
): () => Promise<T> {
  let running: Promise<T> | undefined
  let restsUntil = 0
  const run = async (): Promise<T> => {
    const startedAt = performance.now()
    restsUntil = Number.POSITIVE_INFINITY
    let restedMs = 0
    try {
      const found = await find()
      restedMs = restMs(performance.now() - startedAt)
      return found
    } finally {
      restsUntil = performance.now() + restedMs
    }
  }
  return function singleFlight() {
    if (!running || performance.now() >= restsUntil) running = run()
    return running
  }
}
