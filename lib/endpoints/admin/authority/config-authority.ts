import { randomUUID } from 'node:crypto'
import { newRequestId } from '../../../core/call/index.ts'
import { hashSecret, parseAmount } from '../../../core/catalog/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { KeyStore } from '../keys/key-store.ts'
import {
  accountSettingsOf,
  type ConfigAccount,
  type ConfigKey,
  differingMembers,
  keySettingsOf,
} from './config-settings.ts'

/** The part of a config that is also in the database. */
export interface RulingConfig {
  /** Which of the two rules. */
  readonly authority: 'database' | 'config'
  readonly accounts: readonly ConfigAccount[]
  readonly keys: readonly ConfigKey[]
}

/** The ids that a config, now or earlier, has added to the database. */
export interface Seeds {
  list(): Promise<readonly { readonly kind: 'account' | 'key'; readonly id: string }[]>
}

/** A key as the directory finds it by its secret. */
type Found = { readonly id: string; readonly secretUntil?: number } | undefined

/** Options of {@link ConfigAuthority}. */
export interface ConfigAuthorityOptions {
  /** The store of accounts. */
  readonly accounts: AccountStore
  /** The store of keys. */
  readonly keys: KeyStore
  /** The directory that `authenticate` asks. */
  readonly directory: {
    find(secretHash: string): Found | Promise<Found>
    findAll?(secretHashes: readonly string[]): Promise<ReadonlyMap<string, Exclude<Found, undefined>>>
  }
  /** The ids that configs have added. */
  readonly seeds: Seeds
}

/**
 * A difference between config and database.
 *
 * - `changed`: both have it, and `members` differ.
 * - `missing`: the database does not have it.
 * - `not_in_config`: a config has added it, the current one does not name it, and it is still in use.
 */
export interface Difference {
  readonly kind: 'account' | 'key'
  readonly id: string
  readonly difference: 'changed' | 'missing' | 'not_in_config'
  readonly members: readonly string[]
}

const AT_A_TIME = 20
/** Another process may do the same at the same time. */
const MAX_ROUNDS = 4

/** Compares the accounts and keys of a config with those of the database, and makes the config rule where it says so. */
export class ConfigAuthority {
  readonly #options: ConfigAuthorityOptions
  #config: RulingConfig

  constructor(options: ConfigAuthorityOptions, config: RulingConfig) {
    this.#options = options
    this.#config = config
  }

  /** Takes over another config. */
  adopt(config: RulingConfig): void {
    this.#config = config
  }

  /** Whether the config rules an account or a key, so that operators cannot change it. */
  async rules(kind: 'account' | 'key', id: string): Promise<boolean> {
    const { authority, accounts, keys } = this.#config
    if (authority === 'database') return false
    const named: readonly { readonly id: string }[] = kind === 'account' ? accounts : keys
    if (named.some((one) => one.id === id)) return true
    return (await this.#options.seeds.list()).some((seed) => seed.kind === kind && seed.id === id)
  }

  /** Returns the differences between config and database, by kind and id. Deposits are not compared. */
  async drift(): Promise<readonly Difference[]> {
    const { accounts, keys } = this.#config
    const named = new Set([
      ...accounts.map(({ id }) => `account:${id}`),
      ...keys.map(({ id }) => `key:${id}`),
    ])
    const seeds = (await this.#options.seeds.list()).filter(({ kind, id }) => !named.has(`${kind}:${id}`))
    const owners = await this.#ownersOf(keys)
    const found = [
      ...(await inTurns(accounts, (account) => this.#accountDifference(account))),
      ...(await inTurns(keys, (key) => this.#keyDifference(key, owners))),
      ...(await inTurns(seeds, ({ kind, id }) => this.#unnamed(kind, id))),
    ]
    return found
      .filter((difference) => difference !== undefined)
      .sort((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))
  }

  /**
   * Changes the database where the config rules: accounts and keys that it no longer names are suspended and disabled, all
   * others become what it says. Each change is recorded with the actor `config`.
   *
   * @returns the differences that are left.
   */
  async enforce(): Promise<readonly Difference[]> {
    let left = await this.drift()
    if (this.#config.authority === 'database') return left
    for (let round = 1; left.length > 0 && round <= MAX_ROUNDS; round++) {
      try {
        await this.#apply(left)
      } catch (error) {
        if (round === MAX_ROUNDS) throw error
      }
      left = await this.drift()
    }
    return left
  }

  async #apply(differences: readonly Difference[]): Promise<void> {
    const { keys } = this.#options
    await this.#freeSecrets()
    const accountsById = new Map(this.#config.accounts.map((account) => [account.id, account]))
    const keysById = new Map(this.#config.keys.map((key) => [key.id, key]))
    // Accounts come before keys.
    for (const { kind, id, difference, members } of differences) {
      const account = kind === 'account' ? accountsById.get(id) : undefined
      const key = kind === 'key' ? keysById.get(id) : undefined
      if (account) await this.#applyAccount(account)
      else if (key && difference === 'missing')
        await keys.create(
          { ...keySettingsOf(key), id, secretHash: hashSecret(key.secret), restores: true },
          origin(),
        )
      else if (key) {
        await keys.change(id, () => keySettingsOf(key), origin())
        if (members.includes('secret')) await keys.rotate(id, hashSecret(key.secret), origin())
      } else if (kind === 'key') await keys.change(id, (before) => ({ ...before, enabled: false }), origin())
      else await this.#options.accounts.change(id, (before) => ({ ...before, status: 'suspended' }), origin())
    }
  }

  async #applyAccount(account: ConfigAccount): Promise<void> {
    const { accounts } = this.#options
    const settings = accountSettingsOf(account)
    const changed = await accounts.change(account.id, () => settings, origin())
    if (!changed) await accounts.create(account.id, settings, origin())
    const opening = account.balance === undefined ? 0n : parseAmount(account.balance)
    // Once, under the reference that the first start uses.
    if (opening > 0n) await accounts.deposit(account.id, opening, 'opening', origin())
  }

  /** Takes secrets from keys where the config gives them to other keys. Nobody knows what they get instead. */
  async #freeSecrets(): Promise<void> {
    const { keys } = this.#config
    const owners = await this.#ownersOf(keys)
    for (const { id, secret } of keys) {
      const owner = owners.get(hashSecret(secret))
      if (owner === undefined || owner === id) continue
      await this.#options.keys.rotate(owner, hashSecret(`${randomUUID()}${randomUUID()}`), origin())
    }
  }

  async #accountDifference(account: ConfigAccount): Promise<Difference | undefined> {
    const found = await this.#options.accounts.find(account.id)
    return differenceOf('account', account.id, found && differingMembers(accountSettingsOf(account), found))
  }

  async #keyDifference(key: ConfigKey, owners: ReadonlyMap<string, string>): Promise<Difference | undefined> {
    const found = await this.#options.keys.find(key.id)
    const isSecret = owners.get(hashSecret(key.secret)) === key.id
    const members = found && differingMembers(keySettingsOf(key), found)
    return differenceOf('key', key.id, members && (isSecret ? members : [...members, 'secret']))
  }

  async #unnamed(kind: 'account' | 'key', id: string): Promise<Difference | undefined> {
    const { accounts, keys } = this.#options
    const inUse =
      kind === 'key' ? (await keys.find(id))?.enabled : (await accounts.find(id))?.status === 'active'
    return inUse ? { kind, id, difference: 'not_in_config', members: [] } : undefined
  }

  /** Returns which keys have the secrets of a config, by their hashes. */
  async #ownersOf(keys: readonly ConfigKey[]): Promise<ReadonlyMap<string, string>> {
    const { directory } = this.#options
    const hashes = keys.map(({ secret }) => hashSecret(secret))
    const all = await directory.findAll?.(hashes)
    const found = all
      ? [...all]
      : await inTurns(hashes, async (hash) => [hash, await directory.find(hash)] as const)
    return new Map(
      found.flatMap(([hash, record]) =>
        record === undefined || record.secretUntil !== undefined ? [] : [[hash, record.id]],
      ),
    )
  }
}

/** @param members those that differ; undefined if the database does not have it. */
function differenceOf(
  kind: Difference['kind'],
  id: string,
  members: readonly string[] | undefined,
): Difference | undefined {
  if (!members) return { kind, id, difference: 'missing', members: [] }
  return members.length === 0 ? undefined : { kind, id, difference: 'changed', members }
}

export function placeOf({ kind, id }: Pick<Difference, 'kind' | 'id'>): string {
  return `${kind}:${id}`
}

async function inTurns<Item, Result>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let i = 0; i < items.length; i += AT_A_TIME)
    results.push(...(await Promise.all(items.slice(i, i + AT_A_TIME).map(ask))))
  return results
}

function origin(): ChangeOrigin {
  return { requestId: newRequestId(), actor: 'config', at: Date.now() }
}
