/** Returns a function whose concurrent calls share one run of `find` and its result. */
export function singleFlight<T>(find: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return function singleFlight() {
    running ??= find().finally(() => {
      running = undefined
    })
    return running
  }
}
