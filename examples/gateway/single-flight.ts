/**
 * Returns a function whose concurrent calls share one run of `find` and its result.
 *
 * @param restMs for how long later calls share the result, too, by the time that the run took. Defaults to none.
 */
export function singleFlight<T>(
  find: () => Promise<T>,
  restMs: (tookMs: number) => number = () => 0,
): () => Promise<T> {
  let running: Promise<T> | undefined
  let restsUntil = 0
  const run = (): Promise<T> => {
    const startedAt = performance.now()
    restsUntil = Number.POSITIVE_INFINITY
    return find().finally(() => {
      const now = performance.now()
      restsUntil = now + restMs(now - startedAt)
    })
  }
  return function singleFlight() {
    if (!running || performance.now() >= restsUntil) running = run()
    return running
  }
}
