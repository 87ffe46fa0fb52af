import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type AccountLimits,
  accountLimitsOf,
  type KeyLimits,
  keyLimitsOf,
  newRequestId,
  type PartialLimits,
} from '../../core/call/index.ts'
import { hashSecret, NO_TAGS, parseAmount, type Tags, tagsOf } from '../../core/catalog/index.ts'
import type { ChangeOrigin } from '../../core/change-log/index.ts'
import { ConfigEntries, type EntryList } from '../../core/config/index.ts'
import type { AccountSettings, AccountStore } from '../accounts/account-store.ts'
import type { KeySettings, KeyStore } from '../keys/key-store.ts'

/** An account of a config. */
export interface ConfigAccount {
  readonly id: string
  readonly name?: string | undefined
  /** The initial balance. Absent: postpaid. */
  readonly balance?: string | undefined
  readonly limits?: PartialLimits<AccountLimits> | undefined
  readonly regions?: readonly string[] | undefined
  readonly lineRegions?: readonly string[] | undefined
}

/** A key of a config. */
export interface ConfigKey {
  readonly id: string
  readonly account: string
  readonly secret: string
  readonly name?: string | undefined
  readonly note?: string | undefined
  readonly tags?: Tags | undefined
  readonly enabled?: boolean | undefined
  readonly expiresAt?: string | undefined
  readonly quota?: string | undefined
  readonly allowIps?: readonly string[] | undefined
  readonly allowModels?: readonly string[] | undefined
  readonly limits?: PartialLimits<KeyLimits> | undefined
}

/** The part of a config that is also in the database. */
export interface RulingConfig {
  /** Which of the two rules. */
  readonly authority: 'database' | 'config'
  readonly accounts: EntryList<ConfigAccount>
  readonly keys: EntryList<ConfigKey>
}

/** The ids that a config, now or earlier, has added to the database. */
export interface Seeds {
  /** Returns at most `limit` ids of a kind, in their order, those behind the id `after`. */
  list(kind: Kind, after: string, limit: number): Promise<readonly string[]>
  has(kind: Kind, id: string): Promise<boolean>
}

type Kind = 'account' | 'key'

/** Options of {@link ConfigAuthority}. */
export interface ConfigAuthorityOptions {
  /** The store of accounts. */
  readonly accounts: AccountStore
  /** The store of keys. */
  readonly keys: KeyStore
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
  readonly kind: Kind
  readonly id: string
  readonly difference: 'changed' | 'missing' | 'not_in_config'
  readonly members: readonly string[]
}

/** A page of differences. */
export interface DriftPage {
  readonly differences: readonly Difference[]
  /** The place behind which there may be more; undefined on the last page. */
  readonly reached: string | undefined
}

/** How many accounts or keys are compared at a time. */
const AT_A_TIME = 500
/** The most that are compared for one page. It may have few differences then, or none, and others behind it. */
const MAX_COMPARED = 2000
/** Another process may do the same at the same time. */
const MAX_ROUNDS = 4

/** Compares the accounts and keys of a config with those of the database, and makes the config rule where it says so. */
export class ConfigAuthority {
  readonly #options: ConfigAuthorityOptions
  #config: Entries

  constructor(options: ConfigAuthorityOptions, config: RulingConfig) {
    this.#options = options
    this.#config = entriesOf(config)
  }

  /** Takes over another config. */
  adopt(config: RulingConfig): void {
    this.#config = entriesOf(config)
  }

  /** Whether the config rules an account or a key, so that operators cannot change it. */
  async rules(kind: Kind, id: string): Promise<boolean> {
    const { authority, account, key } = this.#config
    if (authority === 'database') return false
    const named = (kind === 'account' ? account : key).find(id)
    return named !== undefined || this.#options.seeds.has(kind, id)
  }

  /**
   * Returns a page of the differences between config and database, by kind and id. Deposits are not compared.
   *
   * @param limit about the most differences of a page.
   * @param after the place that the page before has `reached`.
   */
  async drift(limit: number, after = ''): Promise<DriftPage> {
    const differences: Difference[] = []
    let compared = 0
    let reached: string | undefined = after
    while (reached !== undefined && differences.length < limit && compared < MAX_COMPARED) {
      const batch: Batch = await this.#batchBehind(reached)
      differences.push(...(await this.#differencesIn(batch)))
      compared += AT_A_TIME
      reached = batch.reached
    }
    return { differences, reached }
  }

  /** Yields the pages of all differences. */
  async *#pages(): AsyncGenerator<readonly Difference[]> {
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { differences, reached }: DriftPage = await this.drift(AT_A_TIME, after)
      yield differences
      after = reached
    }
  }

  /** Returns the ids behind a place that the config names, or that a config has added. Accounts come before keys. */
  async #batchBehind(place: string): Promise<Batch> {
    const isKey = place.startsWith(KEYS)
    const kind = isKey ? 'key' : 'account'
    const after = place.slice(isKey ? KEYS.length : ACCOUNTS.length)
    const accounts = isKey ? [] : this.#config.account.behind(after, AT_A_TIME)
    const keys = isKey ? this.#config.key.behind(after, AT_A_TIME) : []
    const named = [...accounts, ...keys].map(({ id }) => id)
    const seeded = await this.#options.seeds.list(kind, after, AT_A_TIME)
    // Both lists are known up to the smaller of their ends.
    const ends = [named, seeded].filter(({ length }) => length === AT_A_TIME).map((list) => list.at(-1) ?? '')
    const [end] = ends.sort()
    const isIn = (id: string): boolean => end === undefined || id <= end
    const rest = isKey ? undefined : KEYS
    return {
      kind,
      accounts: byIdOf(accounts),
      keys: byIdOf(keys),
      ids: [...new Set([...named, ...seeded])].filter(isIn),
      reached: end === undefined ? rest : placeOf({ kind, id: end }),
    }
  }

  async #differencesIn({ kind, ids, accounts, keys }: Batch): Promise<readonly Difference[]> {
    const found =
      kind === 'account' ? await this.#compareAccounts(ids, accounts) : await this.#compareKeys(ids, keys)
    return found
      .filter((difference) => difference !== undefined)
      .sort((one, other) => (one.id < other.id ? -1 : 1))
  }

  /**
   * Changes the database where the config rules: accounts and keys that it no longer names are suspended and disabled, all
   * others become what it says. Each change is recorded with the actor `config`.
   *
   * @returns the differences that are left; none if another config was adopted meanwhile.
   */
  async enforce(): Promise<readonly Difference[]> {
    const config = this.#config
    let left = await this.#all(config)
    if (config.authority === 'database') return left
    for (let round = 1; left.length > 0 && round <= MAX_ROUNDS; round++) {
      try {
        await this.#apply(left)
      } catch (error) {
        if (round === MAX_ROUNDS) throw error
      }
      left = await this.#all(config)
    }
    return left
  }

  async #all(config: Entries): Promise<readonly Difference[]> {
    const all: Difference[] = []
    for await (const page of this.#pages()) {
      if (this.#config !== config) return []
      all.push(...page)
    }
    return all
  }

  async #apply(differences: readonly Difference[]): Promise<void> {
    const { keys } = this.#options
    await this.#freeSecrets()
    // Accounts come before keys.
    for (const { kind, id, difference, members } of differences) {
      const account = kind === 'account' ? this.#config.account.find(id) : undefined
      const key = kind === 'key' ? this.#config.key.find(id) : undefined
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
    // It is made once, under the reference that the first start uses.
    if (opening > 0n) await accounts.deposit(account.id, opening, 'opening', origin())
  }

  /** Takes secrets from keys where the config gives them to other keys. Nobody knows what they get instead. */
  async #freeSecrets(): Promise<void> {
    for (const some of this.#config.key.read()) {
      const owners = await this.#ownersOf(some)
      for (const { id, secret } of some) {
        const owner = owners.get(hashSecret(secret))
        if (owner === undefined || owner === id) continue
        await this.#options.keys.rotate(owner, hashSecret(`${randomUUID()}${randomUUID()}`), origin())
      }
    }
  }

  async #compareAccounts(
    ids: readonly string[],
    named: ReadonlyMap<string, ConfigAccount>,
  ): Promise<readonly (Difference | undefined)[]> {
    const found = await this.#options.accounts.findAll(ids)
    return ids.map((id) => {
      const wanted = named.get(id)
      const account = found.get(id)
      if (!wanted) return unnamed('account', id, account?.status === 'active')
      return differenceOf('account', id, account && differingMembers(accountSettingsOf(wanted), account))
    })
  }

  async #compareKeys(
    ids: readonly string[],
    named: ReadonlyMap<string, ConfigKey>,
  ): Promise<readonly (Difference | undefined)[]> {
    const [found, owners] = await Promise.all([
      this.#options.keys.findAll(ids),
      this.#ownersOf([...named.values()]),
    ])
    return ids.map((id) => {
      const wanted = named.get(id)
      const key = found.get(id)
      if (!wanted) return unnamed('key', id, key?.enabled === true)
      const hasSecret = owners.get(hashSecret(wanted.secret)) === id
      const members = key && differingMembers(keySettingsOf(wanted), key)
      return differenceOf('key', id, members && (hasSecret ? members : [...members, 'secret']))
    })
  }

  /** Returns which keys have the secrets of keys of a config, by their hashes. */
  #ownersOf(keys: readonly ConfigKey[]): Promise<ReadonlyMap<string, string>> {
    return this.#options.keys.findOwners(keys.map(({ secret }) => hashSecret(secret)))
  }
}

/** A config that is read in pages. */
interface Entries extends Pick<RulingConfig, 'authority'> {
  readonly account: ConfigEntries<ConfigAccount>
  readonly key: ConfigEntries<ConfigKey>
}

function entriesOf({ authority, accounts, keys }: RulingConfig): Entries {
  return { authority, account: ConfigEntries.of(accounts), key: ConfigEntries.of(keys) }
}

/** Accounts or keys that are compared together. */
interface Batch {
  readonly kind: Kind
  /** The ids that the config names, or that an earlier one has named. */
  readonly ids: readonly string[]
  /** The accounts among them that the config names. */
  readonly accounts: ReadonlyMap<string, ConfigAccount>
  /** The keys among them that the config names. */
  readonly keys: ReadonlyMap<string, ConfigKey>
  /** The place of the last one; undefined if none is left. */
  readonly reached: string | undefined
}

function byIdOf<T extends { readonly id: string }>(items: readonly T[]): ReadonlyMap<string, T> {
  return new Map(items.map((item) => [item.id, item]))
}

function unnamed(kind: Kind, id: string, inUse: boolean): Difference | undefined {
  return inUse ? { kind, id, difference: 'not_in_config', members: [] } : undefined
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

const ACCOUNTS = 'account:'
const KEYS = 'key:'

export function placeOf({ kind, id }: Pick<Difference, 'kind' | 'id'>): string {
  return `${kind}:${id}`
}

function origin(): ChangeOrigin {
  return { requestId: newRequestId(), actor: 'config', at: Date.now() }
}

/** Returns the settings of an account as a config gives them. An account that it names is active. */
export function accountSettingsOf(account: ConfigAccount): AccountSettings {
  return {
    name: account.name ?? null,
    prepaid: account.balance !== undefined,
    limits: accountLimitsOf(account.limits),
    regions: account.regions ?? null,
    lineRegions: account.lineRegions ?? null,
    status: 'active',
  }
}

/** Returns the settings of a key as a config gives them. */
export function keySettingsOf(key: ConfigKey): KeySettings & { readonly account: string } {
  return {
    account: key.account,
    name: key.name ?? null,
    note: key.note ?? null,
    tags: tagsOf(Object.entries(key.tags ?? NO_TAGS)),
    enabled: key.enabled ?? true,
    expiresAt: key.expiresAt === undefined ? null : Date.parse(key.expiresAt),
    quota: key.quota === undefined ? null : parseAmount(key.quota),
    allowIps: key.allowIps ?? null,
    allowModels: key.allowModels ?? null,
    limits: keyLimitsOf(key.limits),
  }
}

/** Returns the names of the members in which two settings differ, those of limits as `limits.rpm`. */
function differingMembers<Settings extends AccountSettings | KeySettings>(
  wanted: Settings,
  found: Settings,
): string[] {
  const members: string[] = []
  for (const name of Object.keys(wanted) as (keyof Settings & string)[]) {
    if (name !== 'limits') {
      if (!isDeepStrictEqual(wanted[name], found[name])) members.push(name === 'prepaid' ? 'balance' : name)
      continue
    }
    const limits = new Map(Object.entries(found.limits))
    for (const [limit, value] of Object.entries(wanted.limits))
      if (value !== limits.get(limit)) members.push(`limits.${limit}`)
  }
  return members
}
