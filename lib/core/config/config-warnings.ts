import { type Catalog, compileAllowList, type Model, type Price, priceOn } from '../catalog/index.ts'
import type { AccountEntry, KeyEntry } from './config-schema.ts'
import { returnsCredentials } from './credential-path.ts'
import type { LoadedConfig } from './load-config.ts'
import { accountWarnings, isUnknownModel, keyWarnings } from './unknown-names.ts'

/**
 * Finds the parts of a valid config that may not be meant so. It is given the accounts and keys some at a time, because there
 * may be hundreds of thousands of them.
 *
 * @example
 * const warnings = new ConfigWarnings(config)
 * warnings.addAccounts(config.accounts)
 * warnings.addKeys(config.keys)
 * console.log(warnings.unpriced(), warnings.unknown)
 */
export class ConfigWarnings {
  readonly #catalog: Catalog
  readonly #unknown: string[] = []
  readonly #refusing: readonly string[]
  readonly #prepaid = new Set<string>()
  /** The lists of the models that keys of prepaid accounts may use. Many keys may have the same. */
  readonly #allowLists = new Map<string | undefined, readonly string[] | undefined>()

  /** Whether a name is that of no model. */
  readonly #isUnknown = new Map<string, boolean>()

  constructor({ catalog, passThrough }: Pick<LoadedConfig, 'catalog' | 'passThrough'>) {
    this.#catalog = catalog
    this.#refusing = passThrough
      .filter(({ path, secrets }) => !secrets && returnsCredentials(path.replace(/\/[:*].*/, '')))
      .map(({ path }) => `passThrough ${path}: refuses all requests without "secrets": true`)
  }

  addAccounts(accounts: readonly AccountEntry[]): void {
    for (const account of accounts) {
      const { id, balance, lineRegions } = account
      if (balance !== undefined) this.#prepaid.add(id)
      if (!lineRegions) continue
      for (const warning of accountWarnings(account, this.#catalog))
        this.#unknown.push(`account ${id}: ${warning}`)
    }
  }

  /** Adds keys, after all accounts. */
  addKeys(keys: readonly KeyEntry[]): void {
    for (const key of keys) {
      const { id, account, allowModels } = key
      if (this.#prepaid.has(account)) this.#allowLists.set(JSON.stringify(allowModels), allowModels)
      if (!allowModels) continue
      for (const warning of keyWarnings(key, this.#catalog, (name) => this.#isUnknownModel(name)))
        this.#unknown.push(`key ${id}: ${warning}`)
    }
  }

  #isUnknownModel(name: string): boolean {
    const known = this.#isUnknown.get(name)
    if (known !== undefined) return known
    const isUnknown = isUnknownModel(name, this.#catalog)
    this.#isUnknown.set(name, isUnknown)
    return isUnknown
  }

  /** A warning for each name of a model or a region that does not exist, and for each path that refuses all requests. */
  get unknown(): readonly string[] {
    return [...this.#unknown, ...this.#refusing]
  }

  /**
   * Returns the ids of the models that have no price, neither their own nor that of a line, and that a key of a prepaid
   * account may use: its calls take nothing from the balance.
   */
  unpriced(): string[] {
    const { models } = this.#catalog
    const unpriced = [...models.values()].filter((model) => isUnpriced(model, this.#catalog))
    if (unpriced.length === 0 || this.#prepaid.size === 0) return []
    const lists = [...this.#allowLists.values()]
    // Keys may be issued later.
    const allowed = (lists.length === 0 ? [undefined] : lists).map(compileAllowList)
    return unpriced.map(({ id }) => id).filter((id) => allowed.some((mayUse) => mayUse(id)))
  }
}

function isUnpriced(model: Model, catalog: Catalog): boolean {
  const prices = catalog.linesOf(model.id).map((line) => priceOn(model, line))
  return prices.length > 0 && prices.every(isFree)
}

function isFree({ tiers = [], given: _given, ...units }: Price): boolean {
  return tiers.length === 0 && Object.values(units).every((price) => price === 0n)
}
