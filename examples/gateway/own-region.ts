import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import type { SqlRegions } from 'express-model-gateway/sql'

/** How long an answer about a key is used in a region, in milliseconds: a change has to come from its home before that. */
const KEYS_FRESH_MS = 2500
/** A key that is new here is looked up around the world, over new connections. */
const LOOK_UP_MS = 4000
/** Most accounts in one line of the log. */
const MAX_TOLD = 20

/** Returns the options of `authenticate` about look-ups. */
export function keyCache(regional: object | undefined): { cacheMs?: number; lookupMs?: number } {
  return regional ? { cacheMs: KEYS_FRESH_MS, lookupMs: LOOK_UP_MS } : {}
}

/** @throws {ConfigError} if an account has no home: each region would give it its balance. */
export function requireHomes({ accounts }: GatewayConfig): void {
  const faults = accounts.flatMap(({ home }, i) =>
    home === undefined ? [`accounts[${i}].home: is needed where there are several regions`] : [],
  )
  if (faults.length > 0) throw new ConfigError(faults)
}

/**
 * The part of a config that is a region's. An account stays where it is, with its money, if the config names another home since:
 * each region would give it its balance anew.
 */
export class OwnRegion {
  readonly #name: string
  readonly #regions: Pick<SqlRegions, 'homesOf'>
  readonly #logger: Logger
  #isPartial = false
  #told: unknown

  constructor(name: string, regions: Pick<SqlRegions, 'homesOf'>, logger: Logger) {
    this.#name = name
    this.#regions = regions
    this.#logger = logger
  }

  /** Whether accounts were left out because a region does not answer that may have them. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Returns a config without the accounts whose home is another region, and their keys. */
  async partOf(config: GatewayConfig): Promise<GatewayConfig> {
    const wanted = config.accounts.map(({ id, home = this.#name }) => ({ id, home }))
    const homes = await this.#regions.homesOf(wanted)
    const elsewhere = wanted.flatMap(({ id, home: inConfig }) => {
      const home = homes.get(id)
      return home === inConfig ? [] : [{ account: id, home, inConfig }]
    })
    this.#isPartial = elsewhere.some(({ home }) => home === null)
    this.#tell(elsewhere)
    const accounts = config.accounts.filter(({ id }) => homes.get(id) === this.#name)
    const own = new Set(accounts.map(({ id }) => id))
    return { ...config, accounts, keys: config.keys.filter(({ account }) => own.has(account)) }
  }

  #tell(elsewhere: readonly { readonly home: string | null | undefined }[]): void {
    if (isDeepStrictEqual(elsewhere, this.#told)) return
    this.#told = elsewhere
    const [unknown, moved] = [true, false].map((is) => elsewhere.filter(({ home }) => (home === null) === is))
    const told = (accounts: readonly object[] = []) => ({
      count: accounts.length,
      accounts: accounts.slice(0, MAX_TOLD),
    })
    if (moved?.length)
      this.#logger.error(
        told(moved),
        'accounts stay in their regions: another home in the config moves no money',
      )
    if (unknown?.length)
      this.#logger.error(
        told(unknown),
        'accounts are not added until all other regions answer: one may have them',
      )
  }
}
