import type { Kysely } from 'kysely'
import type { ChangeAction } from '../../../core/change-log/index.ts'
import type { TicketStatus } from '../../../endpoints/tickets/index.ts'
import type { TaskState, VideoTask } from '../../../endpoints/video/index.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { CALL_COLUMNS, CHARGE_COLUMNS } from '../ledger/settlement-columns.ts'
import type { RowOf } from './columns.ts'

/*
 * Types as both databases can hold them: times are milliseconds since the epoch, amounts nano-units, lists and entries
 * JSON text, flags 0 or 1. `bigint` columns read as bigint, `integer` ones as number.
 */

export interface AccountsTable {
  id: string
  name: string | null
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

export type CallsTable = RowOf<typeof CALL_COLUMNS>

export interface IdempotencyTable {
  id: string
  /** Request id of the call that holds the record, or that ran. */
  owner: string
  fingerprint: string
  state: 'running' | 'completed'
  /** While running: when the lease ends; then: when the record is forgotten. */
  expires_at: bigint
}

/** What an account has, or what a key may spend. Its figures are sums of the rows of the other tables. */
export interface WalletsTable {
  /** `account:<id>` or `key:<id>`. */
  id: WalletId
  /** 0: postpaid, or without a quota. */
  limited: number
  /** Deposits, or the key's quota. */
  funds: bigint
  /** Charges less voids. */
  spent: bigint
  /** What its leases and holds come to. */
  leased: bigint
  overrun: bigint
}

export interface DepositsTable {
  account: string
  reference: string
  amount: bigint
  at: bigint
}

/** What processes hold of wallets. One that has ended holds nothing, and stays a while to be told of. */
export interface LeasesTable {
  id: string
  wallet: WalletId
  owner: string
  held: bigint
  /** Number of the last change, and what it moved. */
  seq: number
  last_moved: bigint
  beats: number
  renewed_at: bigint
  ended: 'closed' | 'swept' | null
  ended_at: bigint | null
}

/** Only ever added to. */
export type ChargesTable = RowOf<typeof CHARGE_COLUMNS>

/** Undone charges; of those that came before any charge the amount is 0. Only ever added to. */
export interface VoidsTable {
  request_id: string
  account: string
  key: string | null
  amount: bigint
  at: bigint
}

/** Money held for video tasks that are not over. */
export interface HoldsTable {
  /** What it will be charged under. */
  request_id: string
  account: string
  key: string | null
  amount: bigint
}

export interface VideoTasksTable {
  id: string
  request_id: string
  account: string
  key: string | null
  model: string
  protocol: VideoTask['protocol']
  line: string
  /** null while the upstream has not told it. */
  upstream_id: string | null
  state: TaskState
  hold: bigint
  /** The members of a `VideoTask` that nobody searches for, as JSON. */
  detail: string
  /** The Idempotency-Key's record that is kept from being free; null once it is completed, or where there is none. */
  claim_id: string | null
  claim_owner: string | null
  /** By when a create must have been answered; null once it was. */
  answer_by: bigint | null
  /** When it is to be polled, by anybody or by whoever has claimed it meanwhile; null where it is not. */
  poll_at: bigint | null
  poll_owner: string | null
  missing_since: bigint | null
  created_at: bigint
  updated_at: bigint
  finished_at: bigint | null
}

/** What operators changed. Only ever added to. */
export interface AdminChangesTable {
  /** Request id of the change. */
  id: string
  at: bigint
  actor: string
  action: ChangeAction
  /** Id of what was changed. */
  subject: string
  /** As JSON; null for what was not there. */
  before: string | null
  /** As JSON; the JSON null for what is not there any more. */
  after: string
}

/** Which line has which response. Ids are the upstreams'. */
export interface ResponsesTable {
  id: string
  account: string
  line: string
  model: string
  tokens: bigint
  created_at: bigint
}

/** Lines that operators have switched; any other is as configured. */
export interface LineSwitchesTable {
  line: string
  enabled: number
}

export interface TicketsTable {
  id: string
  account: string
  key: string | null
  /** The call that it is about. */
  request_id: string
  message: string
  status: TicketStatus
  reply: string | null
  created_at: bigint
  updated_at: bigint
}

/** Every table of the database. */
export interface Tables {
  accounts: AccountsTable
  keys: KeysTable
  seeds: SeedsTable
  calls: CallsTable
  idempotency: IdempotencyTable
  wallets: WalletsTable
  deposits: DepositsTable
  leases: LeasesTable
  charges: ChargesTable
  voids: VoidsTable
  holds: HoldsTable
  video_tasks: VideoTasksTable
  admin_changes: AdminChangesTable
  responses: ResponsesTable
  line_switches: LineSwitchesTable
  tickets: TicketsTable
}

/** An open database, as {@link openDatabase} answers it. */
export type Database = Kysely<Tables>
