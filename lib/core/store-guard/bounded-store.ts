import { within } from '../timing/index.ts'
import { eachOperation } from './each-operation.ts'
import { StoreAway } from './store-guard.ts'

/** More than the stores of the toolkit take until their database has been given up. */
const SETTLES_MS = 10_000

/**
 * Returns a store whose operations always settle: what throws rejects, and what has no answer in time rejects with
 * {@link StoreAway}. Its later outcome is dropped. For operations that each concern one call; a {@link StoreGuard}
 * is for those whose failure says that the store is away.
 *
 * @param name the name of the store in errors.
 * @param longer operations that may take longer than 10 s, and how long, in milliseconds.
 * @example
 * const store = boundedStore('tickets', options.store)
 */
export function boundedStore<Store extends object>(
  name: string,
  store: Store,
  longer: Readonly<Record<string, number>> = {},
): Store {
  return eachOperation(store, async (operation, operate) => {
    const ms = longer[operation] ?? SETTLES_MS
    return within(ms, Promise.resolve(operate()), () => {
      throw new StoreAway(`${name}: "${operation}" was not answered in ${ms} ms`)
    })
  })
}
