import { hashSecret, NO_TAGS, type Tags, tagsOf } from '../../../core/catalog/index.ts'
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
import { type AccountOfKeys, type DirectoryAccount, directoryAccount } from '../accounts/directory-account.ts'
import { type ConfigKey, keySettingsOf } from '../authority/config-settings.ts'
import { pageById } from '../page-by-id.ts'
import { SerialQueue } from '../serial-queue.ts'
import { keyChange, keySettingsChange } from './key-change.ts'
import type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './key-store.ts'

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
    set(
      secretHash: string,
      record: Omit<KeySettings, 'quota' | 'name' | 'note' | 'tags'> & {
        id: string
        account: DirectoryAccount
        tags?: Tags
        secretUntil?: number
      },
    ): void
    delete(secretHash: string): void
  }
  /** The accounts, such as a `MemoryAccountStore`. */
  accounts: { get(id: string): AccountOfKeys | undefined }
  /** The initial keys; the ledger and the directory have them too. Defaults to none. */
  keys?: readonly ConfigKey[]
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
  /** The hash of the secret before, if there was an overlap. */
  readonly previousHash?: string | undefined
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
    for (const seed of keys) {
      const times = { createdAt, lastUsedAt: null, previousUntil: null }
      const key = { id: seed.id, ...keySettingsOf(seed), ...times }
      this.#records.set(seed.id, { key, secretHash: hashSecret(seed.secret) })
    }
  }

  /** All changes of the log, oldest first. */
  get changes(): readonly RecordedChange[] {
    return this.#changes.all
  }

  async list({ account, after, limit }: KeyQuery): Promise<readonly Key[]> {
    const all = Array.from(this.#records.values(), ({ key }) => key)
    const found = account === undefined ? all : all.filter((key) => key.account === account)
    return pageById(found, limit, after)
  }

  async find(id: string): Promise<Key | undefined> {
    return this.#records.get(id)?.key
  }

  create({ secretHash, restores = false, ...settings }: NewKey, origin: ChangeOrigin): Promise<KeyCreation> {
    return this.#queue.run(async () => {
      if (!this.#accounts.get(settings.account)) return { kind: 'no_account' }
      const taken =
        this.#records.has(settings.id) ||
        (!restores && (await this.#ledger.wallets([`key:${settings.id}`])).length > 0)
      if (taken) return { kind: 'taken' }
      const key: Key = { ...settings, createdAt: origin.at, lastUsedAt: null, previousUntil: null }
      await this.#setQuota(key)
      this.#take(secretHash)
      this.#save({ key, secretHash })
      this.#changes.add(keyChange('key.created', key, origin))
      return { kind: 'created', key }
    })
  }

  change(
    id: string,
    revise: (key: Key) => KeySettings & Partial<Pick<Key, 'account'>>,
    origin: ChangeOrigin,
  ): Promise<Key | undefined> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return undefined
      const key: Key = { ...before.key, ...revise(before.key), id }
      const change = keySettingsChange(key, before.key, origin)
      if (!change) return before.key
      if (key.quota !== before.key.quota) await this.#setQuota(key)
      this.#save({ ...before, key })
      this.#changes.add(change)
      return key
    })
  }

  rotate(id: string, secretHash: string, origin: ChangeOrigin, overlapMs = 0): Promise<Key | undefined> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return undefined
      if (before.secretHash === secretHash) return before.key
      this.#forget(before)
      this.#take(secretHash)
      const previousUntil = overlapMs === 0 ? null : origin.at + overlapMs
      const key: Key = { ...before.key, previousUntil }
      this.#save({ key, secretHash, previousHash: previousUntil === null ? undefined : before.secretHash })
      this.#changes.add(keyChange('key.rotated', key, origin))
      return key
    })
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, at] of uses) {
      const record = this.#records.get(id)
      if (!record || (record.key.lastUsedAt ?? 0) >= at) continue
      this.#records.set(id, { ...record, key: { ...record.key, lastUsedAt: at } })
    }
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#queue.run(async () => {
      const before = this.#records.get(id)
      if (!before) return false
      this.#forget(before)
      this.#records.delete(id)
      this.#changes.add(keyChange('key.deleted', before.key, origin))
      return true
    })
  }

  #setQuota({ id, quota }: Key): Promise<void> {
    return this.#ledger.setLimit(`key:${id}`, { limited: quota !== null, quota: quota ?? 0n })
  }

  #forget({ secretHash, previousHash }: KeyRecord): void {
    this.#directory.delete(secretHash)
    if (previousHash !== undefined) this.#directory.delete(previousHash)
  }

  /** Ends the overlap of a secret that becomes the current one of another key. */
  #take(secretHash: string): void {
    for (const [id, record] of this.#records)
      if (record.previousHash === secretHash) this.#records.set(id, { ...record, previousHash: undefined })
  }

  #save(given: KeyRecord): void {
    const usedMeanwhile = this.#records.get(given.key.id)?.key.lastUsedAt ?? null
    const saved = { ...given, key: { ...given.key, lastUsedAt: usedMeanwhile } }
    const { key, secretHash, previousHash } = saved
    const account = this.#accounts.get(key.account)
    if (!account) throw new Error(`there is no account "${key.account}"`)
    this.#records.set(key.id, saved)
    const { id, tags, enabled, expiresAt, allowIps, allowModels, limits, previousUntil } = key
    const record = {
      id,
      account: directoryAccount(account),
      ...(tags !== NO_TAGS && { tags: tagsOf(Object.entries(tags)) }),
      enabled,
      expiresAt,
      allowIps,
      allowModels,
      limits,
    }
    this.#directory.set(secretHash, record)
    if (previousHash !== undefined && previousUntil !== null)
      this.#directory.set(previousHash, { ...record, secretUntil: previousUntil })
  }
}
