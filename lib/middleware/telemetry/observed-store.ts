/**
 * Wraps a store so that `observe` sees each answer. The caller gets the store's own answer or error.
 *
 * @param observe is called with the operation's name and what it returned, or a rejected promise of what it threw. It
 * must not throw.
 */
export function observedStore<S extends object>(
  store: S,
  observe: (operation: string, answer: unknown) => void,
): S {
  const operations = new Map<string | symbol, unknown>()
  const observed = (name: string) =>
    function observedOperation(...args: unknown[]): unknown {
      try {
        // Looked up at each call, as without the wrapper.
        const operation = Reflect.get(store, name, store) as (...args: unknown[]) => unknown
        const answer = operation.apply(store, args)
        observe(name, answer)
        return answer
      } catch (error) {
        const failed = Promise.reject(error)
        // The caller handles the error, whether `observe` does or not.
        failed.catch(() => {})
        observe(name, failed)
        throw error
      }
    }
  return new Proxy(store, {
    get(target, name) {
      const known = operations.get(name)
      if (known) return known
      // Read on the store itself: a proxy has no access to private members.
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      const operation = observed(name)
      operations.set(name, operation)
      return operation
    },
  })
}
