import type { AccountLimits, KeyLimits } from '../../core/call/index.ts'

/** An account as authentication needs it. */
export interface AccountRecord {
  readonly id: string
  readonly limits: AccountLimits
  /** Gateway regions that may process its calls; null = all. */
  readonly regions: readonly string[] | null
  /** Regions of the lines that may serve it; null = all. */
  readonly lineRegions: readonly string[] | null
}

/** An API key with its account. The secret itself is nowhere kept. */
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
}

/** Where keys are looked up. A record once handed out is never changed; a change is a new record. */
export interface KeyDirectory {
  /**
   * The key whose secret has this SHA-256, or undefined. May answer at once or later.
   *
   * @param secretHash as `hashSecret` writes it.
   * @throws when the directory cannot be reached.
   */
  find(secretHash: string): KeyRecord | undefined | Promise<KeyRecord | undefined>
}
