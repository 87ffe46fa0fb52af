import type { AccountLimits, KeyLimits } from '../call/index.ts'
import type { Tags } from '../catalog/index.ts'
import type { AccountEntry, KeyEntry } from '../config/index.ts'

/** Keys and accounts as in a config. Members with a default may be left out. */
export interface KeySeed {
  accounts: readonly AccountEntry[]
  keys: readonly KeyEntry[]
}

/** The parts of an account that authentication needs. */
export interface AccountRecord {
  readonly id: string
  readonly limits: AccountLimits
  /** Gateway regions that may process its calls; null = all. */
  readonly regions: readonly string[] | null
  /** Regions of the lines that may serve it; null = all. */
  readonly lineRegions: readonly string[] | null
  /** Whether its keys count as disabled. Defaults to false. */
  readonly suspended?: boolean
}

/** An API key with its account. The secret itself is not stored. */
export interface KeyRecord {
  readonly id: string
  readonly account: AccountRecord
  readonly enabled: boolean
  /** Milliseconds since the epoch; null = never. */
  readonly expiresAt: number | null
  /** Addresses and CIDR blocks; null = all. */
  readonly allowIps: readonly string[] | null
  /** Model ids with `*` as wildcard; null = all. */
  readonly allowModels: readonly string[] | null
  readonly limits: KeyLimits
  /** The tags of all its calls. Absent: none. */
  readonly tags?: Tags
  /**
   * Set where the secret is not the key's current one but the one before: until when it is valid, in milliseconds since the
   * epoch.
   */
  readonly secretUntil?: number
}

/** Looks up keys. A record must not change once it was returned; a change is a new record. */
export interface KeyDirectory {
  /**
   * Returns the key whose secret has this SHA-256, or undefined.
   *
   * @param secretHash the hash as `hashSecret` returns it.
   * @throws (or rejects) if the directory cannot be reached.
   */
  find(secretHash: string): KeyRecord | undefined | Promise<KeyRecord | undefined>
  /**
   * Returns those of some keys that exist, by the SHA-256 of their secrets. It is asked every other second for the keys of
   * running streams and WebSockets; without it, `find` is asked for each of them.
   */
  findAll?(secretHashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>>
}
