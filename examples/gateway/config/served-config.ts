import {
  type AccountEntry,
  ConfigEntries,
  type EntryList,
  type EntryPage,
  type GatewayConfig,
  type KeyEntry,
  type LoadedConfig,
  loadResolvedConfig,
} from 'express-model-gateway/config'
import type { Variables } from './environment.ts'

/** A config as the gateway keeps it. Its accounts and keys, which may be many, are read in pages. */
export interface ServedConfig extends Omit<LoadedConfig, 'accounts' | 'keys'> {
  readonly accounts: EntryList<AccountEntry>
  readonly keys: EntryList<KeyEntry>
}

/** A config without its accounts and keys: what is kept of the config of the start must not keep them. */
export type ConfigMembers = Omit<ServedConfig, 'accounts' | 'keys'>

export function membersOf({ accounts: _, keys: __, ...members }: ServedConfig): ConfigMembers {
  return members
}

/** A valid config as it is sent to another thread or process. */
export interface SentConfig {
  /** The source with its secrets, but without accounts and keys. */
  readonly source: object
  /** The accounts and keys as they were written, which is shorter than with all defaults. */
  readonly accounts: readonly EntryPage[]
  readonly keys: readonly EntryPage[]
  readonly secretFiles: readonly string[]
}

export function sentConfig(config: LoadedConfig): SentConfig {
  const { accounts = [], keys = [], ...source } = config.resolved as GatewayConfig
  return {
    source,
    accounts: ConfigEntries.of(accounts).pages,
    keys: ConfigEntries.of(keys).pages,
    secretFiles: [...config.secretFiles],
  }
}

/** Returns a config as it was sent, to send it to others. */
export function sentAgain({ resolved, accounts, keys, secretFiles }: ServedConfig): SentConfig {
  return {
    source: resolved,
    accounts: ConfigEntries.of(accounts).pages,
    keys: ConfigEntries.of(keys).pages,
    secretFiles: [...secretFiles],
  }
}

/** @param env the environment variables, for proxies. */
export function servedConfig(
  { source, accounts, keys, secretFiles }: SentConfig,
  env: Variables = process.env,
): ServedConfig {
  return {
    ...loadResolvedConfig(source, env),
    accounts: new ConfigEntries(accounts),
    keys: new ConfigEntries(keys),
    secretFiles: new Set(secretFiles),
  }
}
