import type { KeyLimits } from '../../core/call/index.ts'
import { formatAmount, type Tags } from '../../core/catalog/index.ts'
import {
  type ChangeOrigin,
  changedObject,
  changedSettings,
  type RecordedChange,
} from '../../core/change-log/index.ts'
import { isoTime } from '../../core/json-api/index.ts'

/** The settings of a key that operators can change. */
export interface KeySettings {
  readonly name: string | null
  readonly note: string | null
  /** Tags that every call with the key has. */
  readonly tags: Tags
  readonly enabled: boolean
  /** Milliseconds since the epoch; null = never. */
  readonly expiresAt: number | null
  /** The amount that the key may spend in all, in nano-units; null = no quota. */
  readonly quota: bigint | null
  /** Addresses and CIDR blocks; null = all. */
  readonly allowIps: readonly string[] | null
  /** Model ids with `*` as wildcard; null = all. */
  readonly allowModels: readonly string[] | null
  readonly limits: KeyLimits
}

/** A key as operators see it. Its secret is not stored; the ledger has what it has spent. */
export interface Key extends KeySettings {
  readonly id: string
  readonly account: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** When it was used last, to about a minute, in milliseconds since the epoch; null = never. */
  readonly lastUsedAt: number | null
  /** Until when the secret before the current one is valid, in milliseconds since the epoch; null = it is not. */
  readonly previousUntil: number | null
}

/** A key to be created. */
export interface NewKey extends KeySettings {
  readonly id: string
  readonly account: string
  /** The hash that `hashSecret` returns. */
  readonly secretHash: string
  /** Whether to create it even if a key had this id before. Its charges count for the quota. Defaults to false. */
  readonly restores?: boolean
}

/**
 * The result of creating a key.
 *
 * - `taken`: a key with this id exists or existed; its charges still have this id.
 * - `no_account`: there is no such account.
 */
export type KeyCreation =
  | { readonly kind: 'created'; readonly key: Key }
  | { readonly kind: 'taken' | 'no_account' }

/** Selects keys; a member that is left out does not filter. */
export interface KeyQuery {
  readonly account?: string | undefined
  /** Selects keys with a greater id; the last id of the previous page. */
  readonly after?: string | undefined
  /** Most keys to return; at least 1. */
  readonly limit: number
}

/**
 * A store for keys, for operators; `authenticate` reads a `KeyDirectory`. Each operation is one transaction, which
 * includes the record of the change. Operations reject if the store cannot be reached.
 */
export interface KeyStore {
  /** Returns keys, ordered by id. */
  list(query: KeyQuery): Promise<readonly Key[]>

  find(id: string): Promise<Key | undefined>

  /** Returns those of some keys that exist, by id. */
  findAll(ids: readonly string[]): Promise<ReadonlyMap<string, Key>>

  /** Returns which keys have these hashes as those of their current secrets: their ids by hash. */
  findOwners(secretHashes: readonly string[]): Promise<ReadonlyMap<string, string>>

  /** Adds a key and opens the wallet of its quota. */
  create(key: NewKey, origin: ChangeOrigin): Promise<KeyCreation>

  /**
   * Replaces the settings of a key. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new settings for the current ones, while no other change runs, and the account if it is
   *   another one. May be called again.
   * @returns the key as it is now; undefined if there is none.
   */
  change(
    id: string,
    revise: (key: Key) => KeySettings & Partial<Pick<Key, 'account'>>,
    origin: ChangeOrigin,
  ): Promise<Key | undefined>

  /**
   * Gives a key a new secret; nothing happens if it has it already. The one before it is valid for `overlapMs` more; any earlier one becomes invalid at once.
   *
   * @param overlapMs defaults to 0: the previous secret becomes invalid, too.
   * @returns the key; undefined if there is none.
   */
  rotate(id: string, secretHash: string, origin: ChangeOrigin, overlapMs?: number): Promise<Key | undefined>

  /**
   * Notes when keys were used last, by their ids, in milliseconds since the epoch. An earlier time than the noted one changes
   * nothing; an unknown key is ignored.
   */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>

  /**
   * Deletes a key for good: a config that has its id does not create it again.
   *
   * @returns whether there was such a key.
   */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>
}

export function keyChange(
  action: 'key.created' | 'key.rotated' | 'key.deleted',
  key: Key,
  origin: ChangeOrigin,
): RecordedChange {
  const change = changedObject(action, key.id, describeSettings(key), origin)
  const overlaps = action === 'key.rotated' && key.previousUntil !== null
  return overlaps ? { ...change, after: { ...change.after, ...describeOverlap(key) } } : change
}

/** Returns the record of changed settings; undefined if nothing changed. */
export function keySettingsChange(key: Key, previous: Key, origin: ChangeOrigin): RecordedChange | undefined {
  const sides = { before: describeSettings(previous), after: describeSettings(key) }
  return changedSettings('key.changed', key.id, sides, origin)
}

/** Returns until when the previous secret is valid, as the API answers it. */
export function describeOverlap({ previousUntil }: Pick<Key, 'previousUntil'>) {
  return { previous_secret_expires_at: isoTime(previousUntil) }
}

/** Returns the settings as the API answers them. */
export function describeSettings(key: KeySettings & { readonly account: string }) {
  return {
    account: key.account,
    name: key.name,
    note: key.note,
    tags: key.tags,
    enabled: key.enabled,
    expires_at: isoTime(key.expiresAt),
    quota: key.quota === null ? null : formatAmount(key.quota),
    allow_ips: key.allowIps,
    allow_models: key.allowModels,
    limits: key.limits,
  }
}
