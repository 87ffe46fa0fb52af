import { ConfigError } from 'express-model-gateway'
import type { GatewayConfig } from 'express-model-gateway/config'

/** How long an answer about a key is used in a region, in milliseconds: a change has to come from its home before that. */
const KEYS_FRESH_MS = 2500
/** A key that is new here is looked up around the world, over new connections. */
const LOOK_UP_MS = 4000

/** Returns the options of `authenticate` about look-ups. */
export function keyCache(regional: object | undefined): { cacheMs?: number; lookupMs?: number } {
  return regional ? { cacheMs: KEYS_FRESH_MS, lookupMs: LOOK_UP_MS } : {}
}

/**
 * Returns the config without the accounts whose home is another region, and their keys.
 *
 * @throws {ConfigError} if an account has no home: each region would give it its balance.
 */
export function ownPart(config: GatewayConfig, region: string): GatewayConfig {
  const faults = config.accounts.flatMap(({ home }, i) =>
    home === undefined ? [`accounts[${i}].home: is needed where there are several regions`] : [],
  )
  if (faults.length > 0) throw new ConfigError(faults)
  const accounts = config.accounts.filter(({ home }) => home === region)
  const own = new Set(accounts.map(({ id }) => id))
  return { ...config, accounts, keys: config.keys.filter(({ account }) => own.has(account)) }
}
