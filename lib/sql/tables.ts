import type { Kysely } from 'kysely'

/*
 * Types as both databases can hold them: times are milliseconds since the epoch, amounts nano-units, lists and entries
 * JSON text, flags 0 or 1. `bigint` columns read as bigint, `integer` ones as number.
 */

export interface AccountsTable {
  id: string
  name: string | null
  /** Prepaid balance as it was seeded, in nano-units; null = postpaid. */
  balance: bigint | null
  rpm: bigint | null
  tpm: bigint | null
  concurrency: bigint | null
  regions: string | null
  line_regions: string | null
  created_at: bigint
}

export interface KeysTable {
  id: string
  account: string
  secret_hash: string
  enabled: number
  expires_at: bigint | null
  /** What the key may spend in all as it was seeded, in nano-units; null = no quota. */
  quota: bigint | null
  allow_ips: string | null
  allow_models: string | null
  rpm: bigint | null
  tpm: bigint | null
  created_at: bigint
}

/** What the config has put into the database once, and never will again. */
export interface SeedsTable {
  kind: 'account' | 'key'
  id: string
  seeded_at: bigint
}

export interface CallsTable {
  id: string
  account: string | null
  key: string | null
  model: string | null
  status: number
  error_code: string | null
  created_at: bigint
  /** The entry as JSON, without `response_body`. */
  entry: string
  /** Apart, and last: lists never read it, and it may be megabytes. */
  response_body: string | null
}

export interface IdempotencyTable {
  id: string
  /** Request id of the call that holds the record, or that ran. */
  owner: string
  fingerprint: string
  state: 'running' | 'completed'
  /** While running: when the lease ends; then: when the record is forgotten. */
  expires_at: bigint
}

/** Every table of the database. */
export interface Tables {
  accounts: AccountsTable
  keys: KeysTable
  seeds: SeedsTable
  calls: CallsTable
  idempotency: IdempotencyTable
}

/** An open database, as {@link openDatabase} answers it. */
export type Database = Kysely<Tables>
