/**
 * The same store, each answer of which is noted, too. What the caller gets is the store's own answer, and its own error.
 *
 * @param note is given what an operation returned, by the operation's name; what it threw as a rejection. It must not throw.
 */
export function notedStore<S extends object>(
  store: S,
  note: (operation: string, answer: unknown) => void,
): S {
  const operations = new Map<string | symbol, unknown>()
  const noted = (name: string) =>
    function notedOperation(...args: unknown[]): unknown {
      try {
        // Looked up each time, as it is without this.
        const operation = Reflect.get(store, name, store) as (...args: unknown[]) => unknown
        const answer = operation.apply(store, args)
        note(name, answer)
        return answer
      } catch (error) {
        const failed = Promise.reject(error)
        // Told to whoever asked, whether it is noted or not.
        failed.catch(() => {})
        note(name, failed)
        throw error
      }
    }
  return new Proxy(store, {
    get(target, name) {
      const known = operations.get(name)
      if (known) return known
      // Of the store itself: private members are not of the proxy.
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      const operation = noted(name)
      operations.set(name, operation)
      return operation
    },
  })
}
