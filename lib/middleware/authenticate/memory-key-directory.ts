import { accountLimitsOf, keyLimitsOf } from '../../core/call/index.ts'
import { hashSecret, tagsOf } from '../../core/catalog/index.ts'
import type { AccountRecord, KeyDirectory, KeyRecord, KeySeed } from '../../core/key-directory/index.ts'
import { aListOf, checkOptions, type OptionRules, required } from '../../core/options/index.ts'

const RULES: OptionRules<KeySeed> = {
  accounts: required(aListOf("an array of accounts, such as [{ id: 'acme' }]", 'id')),
  keys: required(
    aListOf(
      "an array of keys, such as [{ id: 'k1', account: 'acme', secret: 'sk-…' }]",
      ...['id', 'account', 'secret'],
    ),
  ),
}

/** A directory in the memory of the process. */
export class MemoryKeyDirectory implements KeyDirectory {
  readonly #bySecretHash = new Map<string, KeyRecord>()

  find(secretHash: string): KeyRecord | undefined {
    return this.#bySecretHash.get(secretHash)
  }

  /** Adds a key, or replaces the record of its secret. */
  set(secretHash: string, record: KeyRecord): void {
    this.#bySecretHash.set(secretHash, record)
  }

  delete(secretHash: string): void {
    this.#bySecretHash.delete(secretHash)
  }

  /** Replaces an account in the records of all its keys. */
  setAccount(account: AccountRecord): void {
    for (const [secretHash, record] of this.#bySecretHash) {
      if (record.account.id === account.id) this.#bySecretHash.set(secretHash, { ...record, account })
    }
  }
}

/**
 * Returns a {@link MemoryKeyDirectory} with the accounts and keys of a config.
 *
 * @throws TypeError if a key names an unknown account, its secret is the `env:NAME` of a config that was not loaded, or its
 *   expiry is not a date.
 * @example
 * const keys = memoryKeyDirectory({ accounts: [{ id: 'acme' }], keys: [{ id: 'k1', account: 'acme', secret: 'sk-…' }]
 * })
 */
export function memoryKeyDirectory(seed: KeySeed): MemoryKeyDirectory {
  checkOptions('memoryKeyDirectory', seed, RULES, { others: 'ignored' })
  const directory = new MemoryKeyDirectory()
  const accounts = new Map(seed.accounts.map((account) => [account.id, toAccountRecord(account)]))
  for (const key of seed.keys) {
    const account = accounts.get(key.account)
    if (!account)
      throw new TypeError(
        `memoryKeyDirectory: the key "${key.id}" names the account "${key.account}", which is not in "accounts"`,
      )
    // Taken literally, it would be a secret that everyone can guess.
    if (key.secret.startsWith('env:'))
      throw new TypeError(
        `memoryKeyDirectory: the "secret" of the key "${key.id}" names a variable, which only loadConfig reads; give its value`,
      )
    directory.set(hashSecret(key.secret), toKeyRecord(key, account))
  }
  return directory
}

function toAccountRecord(account: KeySeed['accounts'][number]): AccountRecord {
  return {
    id: account.id,
    limits: accountLimitsOf(account.limits ?? {}),
    regions: account.regions ?? null,
    lineRegions: account.lineRegions ?? null,
    suspended: false,
  }
}

function toKeyRecord(key: KeySeed['keys'][number], account: AccountRecord): KeyRecord {
  return {
    id: key.id,
    account,
    enabled: key.enabled ?? true,
    expiresAt: key.expiresAt === undefined ? null : parseExpiry(key.id, key.expiresAt),
    allowIps: key.allowIps ?? null,
    allowModels: key.allowModels ?? null,
    limits: keyLimitsOf(key.limits ?? {}),
    ...(key.tags && { tags: tagsOf(Object.entries(key.tags)) }),
  }
}

/** Rejects an invalid date, which would never be reached. */
function parseExpiry(keyId: string, expiresAt: string): number {
  const time = Date.parse(expiresAt)
  if (Number.isNaN(time))
    throw new TypeError(`memoryKeyDirectory: "expiresAt" of the key "${keyId}" must be a date in ISO 8601`)
  return time
}
