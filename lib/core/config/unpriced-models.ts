import { type Catalog, compileAllowList, type Model, type Price, priceOn } from '../catalog/index.ts'
import type { LoadedConfig } from './load-config.ts'

/**
 * Returns the ids of the models of a config that have no price, neither their own nor that of a line, and that a key of a
 * prepaid account may use: its calls take nothing from the balance.
 */
export function unpricedModels({
  accounts,
  keys,
  catalog,
}: Pick<LoadedConfig, 'accounts' | 'keys' | 'catalog'>): string[] {
  const unpriced = [...catalog.models.values()].filter((model) => isUnpriced(model, catalog))
  const prepaid = new Set(accounts.filter(({ balance }) => balance !== undefined).map(({ id }) => id))
  if (unpriced.length === 0 || prepaid.size === 0) return []
  const own = keys.filter(({ account }) => prepaid.has(account))
  // Many keys may use the same models.
  const lists = new Map(own.map(({ allowModels }) => [JSON.stringify(allowModels), allowModels]))
  // Keys may be issued later.
  const allowed = lists.size === 0 ? [compileAllowList(undefined)] : [...lists.values()].map(compileAllowList)
  return unpriced.map(({ id }) => id).filter((id) => allowed.some((mayUse) => mayUse(id)))
}

function isUnpriced(model: Model, catalog: Catalog): boolean {
  const prices = catalog.linesOf(model.id).map((line) => priceOn(model, line))
  return prices.length > 0 && prices.every(isFree)
}

function isFree({ tiers = [], ...units }: Price): boolean {
  return tiers.length === 0 && Object.values(units).every((price) => price === 0n)
}
