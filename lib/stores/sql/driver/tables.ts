import type { ColumnType, Kysely } from 'kysely'
import type { Role } from '../../../core/call/index.ts'
import type { ChangeAction } from '../../../core/change-log/index.ts'
import type { TaskState, VideoTask } from '../../../endpoints/video/index.ts'
import type { AnswersTable, CallLabelsTable, KeptThingsTable, TicketsTable } from '../calls/call-tables.ts'
import type {
  BudgetHoldsTable,
  BudgetNoticesTable,
  BudgetsTable,
  CarriedSpendingTable,
  DepositsTable,
  HoldsTable,
  LeasesTable,
  LeaseWatchersTable,
  VoidsTable,
  WalletsTable,
} from '../ledger/ledger-tables.ts'
import type { CALL_COLUMNS, CHARGE_COLUMNS } from '../ledger/settlement-columns.ts'
import type { RegionTables } from '../regions/region-tables.ts'
import type { UpkeepTable } from '../retention/upkeep-tables.ts'
import type { UsageMarksTable, UsageTable } from '../usage/usage-tables.ts'
import type { WebhookTables } from '../webhooks/webhook-tables.ts'
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
  suspended: ColumnType<number, number | undefined>
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
  name: string | null
  note: string | null
  /** As a JSON object; null: none. */
  tags: string | null
  /** The secret before the current one, which is valid until then; null: there is none. */
  previous_hash: string | null
  previous_until: bigint | null
  last_used_at: bigint | null
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

/** Charges. Rows are only added. */
export type ChargesTable = RowOf<typeof CHARGE_COLUMNS>

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

/** Operators with tokens of their own. */
export interface OperatorsTable {
  id: string
  name: string
  role: Role
  token_hash: string
  /** The token before the last rotation; null if it is no longer valid. */
  previous_hash: string | null
  previous_until: bigint | null
  created_at: bigint
}

/** The sessions of operators who signed in at a provider. */
export interface OperatorSessionsTable {
  id: string
  secret_hash: string
  name: string
  /** Separated by commas. */
  roles: string
  created_at: bigint
  expires_at: bigint
}

/** All tables of the database. */
export interface Tables extends WebhookTables, RegionTables {
  accounts: AccountsTable
  keys: KeysTable
  seeds: SeedsTable
  usage: UsageTable
  usage_marks: UsageMarksTable
  upkeep: UpkeepTable
  calls: CallsTable
  call_labels: CallLabelsTable
  idempotency: IdempotencyTable
  answers: AnswersTable
  wallets: WalletsTable
  deposits: DepositsTable
  leases: LeasesTable
  lease_watchers: LeaseWatchersTable
  charges: ChargesTable
  voids: VoidsTable
  carried_spending: CarriedSpendingTable
  holds: HoldsTable
  budgets: BudgetsTable
  budget_notices: BudgetNoticesTable
  budget_holds: BudgetHoldsTable
  video_tasks: VideoTasksTable
  admin_changes: AdminChangesTable
  kept_things: KeptThingsTable
  line_switches: LineSwitchesTable
  rest_lifts: RestLiftsTable
  operators: OperatorsTable
  operator_sessions: OperatorSessionsTable
  tickets: TicketsTable
}

/** An open database, as {@link openDatabase} returns it. */
export type Database = Kysely<Tables>
