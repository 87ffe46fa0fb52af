/**
 * Wraps a store so that `note` sees each answer. The caller gets the store's own answer or error.
 *
 * @param note is called with the operation's name and what it returned, or a rejected promise of what it threw. It
 * must not throw.
 */
export function notedStore<S extends object>(
  store: S,
  note: (operation: string, answer: unknown) => void,
): S {
  const operations = new Map<string | symbol, unknown>()
  const noted = (name: string) =>
    function notedOperation(...args: unknown[]): unknown {
      try {
        // Looked up at each call, as without the wrapper.
        const operation = Reflect.get(store, name, store) as (...args: unknown[]) => unknown
        const answer = operation.apply(store, args)
        note(name, answer)
        return answer
      } catch (error) {
        const failed = Promise.reject(error)
        // The caller handles the error, whether `note` does or not.
        failed.catch(() => {})
        note(name, failed)
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
      const operation = noted(name)
      operations.set(name, operation)
      return operation
    },
  })
}
