import type { Call } from '../call/index.ts'
import type { Catalog } from '../catalog/index.ts'
import { checkedFunction } from './app-functions.ts'
import { type OptionRule, required } from './options.ts'

/**
 * The models and lines, or a function that returns them if they can change while the app runs. If the function always
 * returns the same catalogue for the same call, running calls are not affected by a change.
 */
export type CatalogSource = Catalog | ((call: Call) => Catalog)

export const aCatalog: OptionRule = {
  be: 'a catalogue, such as loadConfig(json).catalog, or a function that returns one',
  accepts: (value) => typeof value === 'function' || isCatalog(value),
}

function isCatalog(value: unknown): value is Catalog {
  return typeof (value as Partial<Catalog> | null)?.models?.has === 'function'
}

export const neededCatalog = required(aCatalog)

export function catalogFrom<Given extends readonly [Call?]>(
  source: Catalog | ((...given: Given) => Catalog),
): (...given: Given) => Catalog {
  if (typeof source !== 'function') return () => source
  return checkedFunction('"catalog"', { be: 'a catalogue', accepts: isCatalog }, source)
}
