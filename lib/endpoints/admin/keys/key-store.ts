import type { KeyLimits } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'

/** What an operator decides about a key. */
export interface KeySettings {
  readonly enabled: boolean
  /** Milliseconds since the epoch; null = never. */
  readonly expiresAt: number | null
  /** What the key may spend in all, in nano-units; null = no quota. */
  readonly quota: bigint | null
  /** Addresses and CIDR blocks; null = all. */
  readonly allowIps: readonly string[] | null
  /** Model ids with `*` as wildcard; null = all. */
  readonly allowModels: readonly string[] | null
  readonly limits: KeyLimits
}

/** A key as those see it who run the service. Its secret is nowhere kept, what it has spent is in the ledger. */
export interface Key extends KeySettings {
  readonly id: string
  readonly account: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** A key to be made. */
export interface NewKey extends KeySettings {
  readonly id: string
  readonly account: string
  /** As `hashSecret` writes it. */
  readonly secretHash: string
}

/**
 * What came of making a key.
 *
 * - `taken`: there is one with this id, or there was: its charges still stand under it.
 * - `no_account`: there is no such account.
 */
export type KeyCreation =
  | { readonly kind: 'created'; readonly key: Key }
  | { readonly kind: 'taken' | 'no_account' }

/** Which keys to list; members left out do not narrow. */
export interface KeyQuery {
  readonly account?: string | undefined
  /** Only keys behind this id. */
  readonly after?: string | undefined
  /** Most keys answered; at least 1. */
  readonly limit: number
}

/**
 * Where keys are kept, for those who run the service; `authenticate` looks them up elsewhere. Each operation is one
 * transaction: a change is recorded with what it changes, or neither is there. Rejects when the store cannot be reached.
 */
export interface KeyStore {
  /** In the order of their ids. */
  list(query: KeyQuery): Promise<readonly Key[]>

  find(id: string): Promise<Key | undefined>

  /** Adds a key and opens the wallet of its quota. */
  create(key: NewKey, origin: ChangeOrigin): Promise<KeyCreation>

  /**
   * Replaces the settings of a key. What comes out as it was is no change, and not recorded.
   *
   * @param revise makes the new settings of those that stand, while nobody else changes them. May be run again.
   * @returns the key as it is now; undefined where there is none.
   */
  change(
    id: string,
    revise: (settings: KeySettings) => KeySettings,
    origin: ChangeOrigin,
  ): Promise<Key | undefined>

  /**
   * Gives a key another secret; the one before is good for nothing any more.
   *
   * @returns the key; undefined where there is none.
   */
  rotate(id: string, secretHash: string, origin: ChangeOrigin): Promise<Key | undefined>

  /**
   * Deletes a key, for good: what a config says of its id does not bring it back.
   *
   * @returns whether there was one.
   */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>
}
