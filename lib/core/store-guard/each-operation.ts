/** Calls an operation of a store, and returns what its user gets. */
export type RunOperation = (name: string, operate: () => unknown) => unknown

/**
 * Wraps a store so that `run` calls each of its operations. Everything else of it is as it was.
 *
 * @example
 * const logged = eachOperation(store, (name, operate) => {
 *   console.log(name)
 *   return operate()
 * })
 */
export function eachOperation<Store extends object>(store: Store, run: RunOperation): Store {
  const operations = new Map<string, unknown>()
  const operationOf = (name: string) =>
    function operation(...args: unknown[]): unknown {
      return run(name, () => {
        // Looked up at each call, as without the wrapper.
        const operate = Reflect.get(store, name, store) as (...args: unknown[]) => unknown
        return operate.apply(store, args)
      })
    }
  return new Proxy(store, {
    get(target, name) {
      // Read on the store itself: a proxy has no access to private members.
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      const known = operations.get(name)
      if (known) return known
      const operation = operationOf(name)
      operations.set(name, operation)
      return operation
    },
  })
}
