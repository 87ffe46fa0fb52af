import type { AccountLimits } from '../../../core/call/index.ts'
import { hashSecret, parseAmount } from '../../../core/catalog/index.ts'
import {
  aChangeLog,
  type ChangeOrigin,
  MemoryChangeLog,
  type RecordedChange,
} from '../../../core/change-log/index.ts'
import {
  aListOf,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../../core/options/index.ts'
import { SerialQueue } from '../serial-queue.ts'
import { keyChange, keySettingsChange } from './key-change.ts'
import type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './key-store.ts'

/** A key of a config. */
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

/** The members of an account that keys need. */
interface KeysAccount {
  readonly id: string
  readonly limits: AccountLimits
  readonly regions: readonly string[] | null
  readonly lineRegions: readonly string[] | null
}

/** Options of {@link MemoryKeyStore}. */
export interface MemoryKeyStoreOptions {
  /** The ledger of the keys' quotas, such as a `MemoryLedger`. */
  ledger: {
    setLimit(
      wallet: `key:${string}`,
      limit: { readonly limited: boolean; readonly quota: bigint },
    ): Promise<void>
    wallets(ids: readonly `key:${string}`[]): Promise<readonly object[]>
  }
  /** The directory that `authenticate` reads, such as a `MemoryKeyDirectory`. Gets each changed key. */
  directory: {
    set(secretHash: string, record: Omit<KeySettings, 'quota'> & { id: string; account: KeysAccount }): void
    delete(secretHash: string): void
  }
  /** The accounts, such as a `MemoryAccountStore`. */
  accounts: { get(id: string): KeysAccount | undefined }
  /** The initial keys; the ledger and the directory have them too. Defaults to none. */
  keys?: readonly MemoryKeySeed[]
  /** The log of changes. Defaults to a new one. */
  changes?: MemoryChangeLog
}

const RULES: OptionRules<MemoryKeyStoreOptions> = {
  ledger: required(anObjectWith('the ledger that the billing guard uses', 'setLimit', 'wallets')),
  directory: required(anObjectWith('the one that authenticate asks', 'set', 'delete')),
  accounts: required(anObjectWith('a MemoryAccountStore', 'get')),
  keys: aListOf('a list of keys, each with its "id" and "secret"', 'id', 'secret'),
  changes: aChangeLog,
}

interface KeyRecord {
  readonly key: Key
  readonly secretHash: string
}

/**
 * A key store in this process's memory.
 *
 * @throws TypeError at construction without a ledger, a directory or accounts.
 * @example
 * const keys = new MemoryKeyStore({ ledger, directory, accounts, keys: config.keys })
 */
export class MemoryKeyStore implements KeyStore {
  readonly #ledger: MemoryKeyStoreOptions['ledger']
  readonly #directory: MemoryKeyStoreOptions['directory']
  readonly #accounts: MemoryKeyStoreOptions['accounts']
  readonly #changes: MemoryChangeLog
  readonly #records = new Map<string, KeyRecord>()
  /** Runs one change at a time. */
  readonly #queue = new SerialQueue()

  constructor(options: MemoryKeyStoreOptions) {
    checkOptions('MemoryKeyStore', options, RULES)
    const { ledger, directory, accounts, keys = [], changes } = options
    this.#ledger = ledger
    this.#directory = directory
    this.#accounts = accounts
    this.#changes = changes ?? new MemoryChangeLog()
    const createdAt = Date.now()
    for (const seed of keys)
      this.#records.set(seed.id, { key: keyOfSeed(seed, createdAt), secretHash: hashSecret(seed.secret) })
  }

  /** All changes of the log, oldest first. */
  get changes(): readonly RecordedChange[] {
    return this.#changes.all
  }

  async list({ account, after = '', limit }: KeyQuery): Promise<readonly Key[]> {
    return [...this.#records.values()]
      .map(({ key }) => key)
      .filter((key) => key.id > after && (account === undefined || key.account === account))
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, limit)
  }

  async find(id: string): Promise<Key | undefined> {
    return this.#records.get(id)?.key
  }

  create({ secretHash, ...settings }: NewKey, origin: ChangeOrigin): Promise<KeyCreation> {
    return this.#queue.run(async () => {
      if (!this.#accounts.get(settings.account)) return { kind: 'no_account' }
      const taken =
        this.#records.has(settings.id) || (await this.#ledger.wallets([`key:${settings.id}`])).length > 0
      if (taken) return { kind: 'taken' }
      const key: Key = { ...settings, createdAt: origin.at }
      await this.#setQuota(key)
      this.#save({ key, secretHash })
      this.#changes.add(keyChange('key.created', key, origin))
      return { kind: 'created', key }
    })
  }

  change(
    id: string,
    revise: (settings: KeySettings) => KeySettings,
    origin: ChangeOrigin,
  ): Promise<Key | undefined> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return undefined
      const { account, createdAt } = before.key
      const key: Key = { ...revise(before.key), id, account, createdAt }
      const change = keySettingsChange(key, before.key, origin)
      if (!change) return before.key
      if (key.quota !== before.key.quota) await this.#setQuota(key)
      this.#save({ key, secretHash: before.secretHash })
      this.#changes.add(change)
      return key
    })
  }

  rotate(id: string, secretHash: string, origin: ChangeOrigin): Promise<Key | undefined> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return undefined
      this.#directory.delete(before.secretHash)
      this.#save({ key: before.key, secretHash })
      this.#changes.add(keyChange('key.rotated', before.key, origin))
      return before.key
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return false
      this.#directory.delete(before.secretHash)
      this.#records.delete(id)
      this.#changes.add(keyChange('key.deleted', before.key, origin))
      return true
    })
  }

  #setQuota({ id, quota }: Key): Promise<void> {
    return this.#ledger.setLimit(`key:${id}`, { limited: quota !== null, quota: quota ?? 0n })
  }

  #save({ key, secretHash }: KeyRecord): void {
    const account = this.#accounts.get(key.account)
    if (!account) throw new Error(`there is no account "${key.account}"`)
    this.#records.set(key.id, { key, secretHash })
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
}

function keyOfSeed(seed: MemoryKeySeed, createdAt: number): Key {
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
