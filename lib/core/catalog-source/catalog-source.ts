import type { Call } from '../call/index.ts'
import type { Catalog } from '../catalog/index.ts'

/**
 * The models and lines, or a function that returns them if they can change while the app runs. If the function always
 * returns the same catalogue for the same call, running calls are not affected by a change.
 */
export type CatalogSource = Catalog | ((call: Call) => Catalog)

/**
 * Returns a function for the catalogue of a call.
 *
 * @param owner the middleware whose option it is, for the message.
 * @throws TypeError if there is no catalogue.
 */
export function catalogFrom(owner: string, source: CatalogSource): (call: Call) => Catalog {
  if (!source) throw new TypeError(`${owner}: "catalog" is needed; loadConfig(json).catalog is one`)
  return typeof source === 'function' ? source : () => source
}
