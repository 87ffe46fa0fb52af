import type { AccountLimits } from '../../../core/call/index.ts'
import { hashSecret, parseAmount } from '../../../core/catalog/index.ts'
import { type ChangeOrigin, MemoryChangeLog, type RecordedChange } from '../../../core/change-log/index.ts'
import { keyChange, keySettingsChange } from './key-change.ts'
import type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './key-store.ts'

/** Keys as a config writes them; only what differs from the defaults has to be given. */
export interface MemoryKeySeed {
  readonly id: string
  readonly account: string
  readonly secret: string
  readonly enabled?: boolean | undefined
  readonly expiresAt?: string | undefined
  readonly quota?: string | undefined
  readonly allowIps?: readonly string[] | undefined
  readonly allowModels?: readonly string[] | undefined
  readonly limits?: KeySettings['limits'] | undefined
}

/** An account as keys need it. */
interface KeysAccount {
  readonly id: string
  readonly limits: AccountLimits
  readonly regions: readonly string[] | null
  readonly lineRegions: readonly string[] | null
}

/** Options of {@link MemoryKeyStore}. */
export interface MemoryKeyStoreOptions {
  /** Where the keys' quotas are kept; a `MemoryLedger` fits. */
  ledger: {
    setLimit(
      wallet: `key:${string}`,
      limit: { readonly limited: boolean; readonly quota: bigint },
    ): Promise<void>
    wallets(ids: readonly `key:${string}`[]): Promise<readonly object[]>
  }
  /** Is told of changed keys, so that `authenticate` sees them; a `MemoryKeyDirectory` fits. */
  directory: {
    set(secretHash: string, record: Omit<KeySettings, 'quota'> & { id: string; account: KeysAccount }): void
    delete(secretHash: string): void
  }
  /** Knows the accounts; a `MemoryAccountStore` fits. */
  accounts: { get(id: string): KeysAccount | undefined }
  /** The keys that are there at first, in the ledger and the directory too. Defaults to none. */
  keys?: readonly MemoryKeySeed[]
  /** Where changes are recorded. Defaults to a log of its own. */
  changes?: MemoryChangeLog
}

interface KeptKey {
  readonly key: Key
  readonly secretHash: string
}

/**
 * Keys in this process's memory.
 *
 * @throws TypeError without a ledger, a directory or accounts.
 * @example
 * const keys = new MemoryKeyStore({ ledger, directory, accounts, keys: config.keys })
 */
export class MemoryKeyStore implements KeyStore {
  readonly #ledger: MemoryKeyStoreOptions['ledger']
  readonly #directory: MemoryKeyStoreOptions['directory']
  readonly #accounts: MemoryKeyStoreOptions['accounts']
  readonly #changes: MemoryChangeLog
  readonly #kept = new Map<string, KeptKey>()
  #last: Promise<unknown> = Promise.resolve()

  constructor({ ledger, directory, accounts, keys = [], changes }: MemoryKeyStoreOptions) {
    if (typeof ledger?.setLimit !== 'function')
      throw new TypeError('MemoryKeyStore: "ledger" must be the ledger that the billing guard uses')
    if (typeof directory?.set !== 'function')
      throw new TypeError('MemoryKeyStore: "directory" must be the one that authenticate asks')
    if (typeof accounts?.get !== 'function')
      throw new TypeError('MemoryKeyStore: "accounts" must be a MemoryAccountStore')
    this.#ledger = ledger
    this.#directory = directory
    this.#accounts = accounts
    this.#changes = changes ?? new MemoryChangeLog()
    const createdAt = Date.now()
    for (const seed of keys)
      this.#kept.set(seed.id, { key: seededKey(seed, createdAt), secretHash: hashSecret(seed.secret) })
  }

  /** What was changed since the process started, in its order; of all who record in the same log. */
  get changes(): readonly RecordedChange[] {
    return this.#changes.all
  }

  async list({ account, after = '', limit }: KeyQuery): Promise<readonly Key[]> {
    return [...this.#kept.values()]
      .map(({ key }) => key)
      .filter((key) => key.id > after && (account === undefined || key.account === account))
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, limit)
  }

  async find(id: string): Promise<Key | undefined> {
    return this.#kept.get(id)?.key
  }

  create({ secretHash, ...settings }: NewKey, origin: ChangeOrigin): Promise<KeyCreation> {
    return this.#alone(async () => {
      if (!this.#accounts.get(settings.account)) return { kind: 'no_account' }
      const known =
        this.#kept.has(settings.id) || (await this.#ledger.wallets([`key:${settings.id}`])).length > 0
      if (known) return { kind: 'taken' }
      const key: Key = { ...settings, createdAt: origin.at }
      await this.#limit(key)
      this.#keep({ key, secretHash })
      this.#changes.add(keyChange('key.created', key, origin))
      return { kind: 'created', key }
    })
  }

  change(
    id: string,
    revise: (settings: KeySettings) => KeySettings,
    origin: ChangeOrigin,
  ): Promise<Key | undefined> {
    return this.#alone(async () => {
      const before = this.#kept.get(id)
      if (!before) return undefined
      const { account, createdAt } = before.key
      const key: Key = { ...revise(before.key), id, account, createdAt }
      const change = keySettingsChange(key, before.key, origin)
      if (!change) return before.key
      if (key.quota !== before.key.quota) await this.#limit(key)
      this.#keep({ key, secretHash: before.secretHash })
      this.#changes.add(change)
      return key
    })
  }

  rotate(id: string, secretHash: string, origin: ChangeOrigin): Promise<Key | undefined> {
    return this.#alone(async () => {
      const before = this.#kept.get(id)
      if (!before) return undefined
      this.#directory.delete(before.secretHash)
      this.#keep({ key: before.key, secretHash })
      this.#changes.add(keyChange('key.rotated', before.key, origin))
      return before.key
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#alone(async () => {
      const before = this.#kept.get(id)
      if (!before) return false
      this.#directory.delete(before.secretHash)
      this.#kept.delete(id)
      this.#changes.add(keyChange('key.deleted', before.key, origin))
      return true
    })
  }

  #limit({ id, quota }: Key): Promise<void> {
    return this.#ledger.setLimit(`key:${id}`, { limited: quota !== null, quota: quota ?? 0n })
  }

  #keep({ key, secretHash }: KeptKey): void {
    const account = this.#accounts.get(key.account)
    if (!account) throw new Error(`account "${key.account}" is gone`)
    this.#kept.set(key.id, { key, secretHash })
    const { id, enabled, expiresAt, allowIps, allowModels, limits } = key
    const { limits: accountLimits, regions, lineRegions } = account
    this.#directory.set(secretHash, {
      id,
      account: { id: account.id, limits: accountLimits, regions, lineRegions },
      enabled,
      expiresAt,
      allowIps,
      allowModels,
      limits,
    })
  }

  /** One change at a time: what it read still stands when it writes. */
  #alone<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run)
    this.#last = result.catch(() => {})
    return result
  }
}

function seededKey(seed: MemoryKeySeed, createdAt: number): Key {
  return {
    id: seed.id,
    account: seed.account,
    enabled: seed.enabled ?? true,
    expiresAt: seed.expiresAt === undefined ? null : Date.parse(seed.expiresAt),
    quota: seed.quota === undefined ? null : parseAmount(seed.quota),
    allowIps: seed.allowIps ?? null,
    allowModels: seed.allowModels ?? null,
    limits: seed.limits ?? { rpm: null, tpm: null },
    createdAt,
  }
}
