import { eachOperation } from '../../core/store-guard/index.ts'

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
  return eachOperation(store, (name, operate) => {
    try {
      const answer = operate()
      observe(name, answer)
      return answer
    } catch (error) {
      const failed = Promise.reject(error)
      // The caller handles the error, whether `observe` does or not.
      failed.catch(() => {})
      observe(name, failed)
      throw error
    }
  })
}
