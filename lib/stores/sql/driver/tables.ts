import type { ColumnType, Kysely } from 'kysely'
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

/** The ids that the config has added to the database once. They are never added again. */
export interface SeedsTable {
  kind: 'account' | 'key'
  id: string
  seeded_at: bigint
}

export type CallsTable = RowOf<typeof CALL_COLUMNS>

export interface IdempotencyTable {
  id: string
  /** The request id of the call that holds the record, or that ran. */
  owner: string
  fingerprint: string
  state: 'running' | 'completed'
  /** While running: the end of the lease; after that: when the record is deleted. */
  expires_at: bigint
  /** The answer for repetitions; null if there is none. */
  answer: ColumnType<string | null, string | null | undefined, string | null>
}

/** The parts of the answers of calls with an Idempotency-Key. */
export interface AnswersTable {
  /** Id of the call. */
  id: string
  part: number
  bytes: Uint8Array
}

/** The balance of an account or the quota of a key. The figures are sums of the rows of other tables. */
export interface WalletsTable {
  /** `account:<id>` or `key:<id>`. */
  id: WalletId
  /** 0: postpaid, or without a quota. */
  limited: number
  /** The sum of deposits; for a key, its quota. */
  funds: bigint
  /** The sum of charges less voids. */
  spent: bigint
  /** The sum of leases and holds. */
  leased: bigint
  overrun: bigint
}

export interface DepositsTable {
  account: string
  reference: string
  amount: bigint
  at: bigint
}

/** The leases of processes. A lease that has ended holds nothing and is kept for a while, for repeated changes. */
export interface LeasesTable {
  id: string
  wallet: WalletId
  owner: string
  held: bigint
  /** The number of the last change; `last_moved` is what it moved. */
  seq: number
  last_moved: bigint
  beats: number
  renewed_at: bigint
  ended: 'closed' | 'swept' | null
  ended_at: bigint | null
}

/** Charges. Rows are only added. */
export type ChargesTable = RowOf<typeof CHARGE_COLUMNS>

/** Voided charges; the amount is 0 for a void that came before its charge. Rows are only added. */
export interface VoidsTable {
  request_id: string
  account: string
  key: string | null
  amount: bigint
  at: bigint
}

/** Money held for video tasks that have not ended. */
export interface HoldsTable {
  /** The request id of the later charge. */
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
  /** null until the line has reported it. */
  upstream_id: string | null
  state: TaskState
  hold: bigint
  /** The members of a `VideoTask` that no query filters by, as JSON. */
  detail: string
  /** The record of the Idempotency-Key, which does not expire; null once it is completed, or if there is none. */
  claim_id: string | null
  claim_owner: string | null
  /** By when the create must be answered; null once it was. */
  answer_by: bigint | null
  /** When the next poll is due, or when the claim of a process on it ends; null if the task is not polled. */
  poll_at: bigint | null
  poll_owner: string | null
  missing_since: bigint | null
  created_at: bigint
  updated_at: bigint
  finished_at: bigint | null
}

/** Changes by operators. Rows are only added. */
export interface AdminChangesTable {
  /** The request id of the change. */
  id: string
  at: bigint
  actor: string
  action: ChangeAction
  /** The id of the changed object. */
  subject: string
  /** As JSON; null if the object did not exist. */
  before: string | null
  /** As JSON; the JSON null if the object no longer exists. */
  after: string
}

/** What lines keep for whom. Ids are the upstreams'. */
export interface KeptThingsTable {
  kind: string
  id: string
  account: string
  key: string | null
  line: string
  model: string | null
  tokens: bigint
  created_at: bigint
  /** null if it stays until it is deleted. */
  expires_at: bigint | null
}

/** Lines that operators have switched. All other lines are as configured. */
export interface LineSwitchesTable {
  line: string
  enabled: number
}

/** How often operators have lifted the rests of lines. */
export interface RestLiftsTable {
  line: string
  lifts: number
}

export interface TicketsTable {
  id: string
  account: string
  key: string | null
  /** The call that the ticket is about. */
  request_id: string
  message: string
  status: TicketStatus
  reply: string | null
  created_at: bigint
  updated_at: bigint
}

/** All tables of the database. */
export interface Tables {
  accounts: AccountsTable
  keys: KeysTable
  seeds: SeedsTable
  calls: CallsTable
  idempotency: IdempotencyTable
  answers: AnswersTable
  wallets: WalletsTable
  deposits: DepositsTable
  leases: LeasesTable
  charges: ChargesTable
  voids: VoidsTable
  holds: HoldsTable
  video_tasks: VideoTasksTable
  admin_changes: AdminChangesTable
  kept_things: KeptThingsTable
  line_switches: LineSwitchesTable
  rest_lifts: RestLiftsTable
  tickets: TicketsTable
}

/** An open database, as {@link openDatabase} returns it. */
export type Database = Kysely<Tables>
