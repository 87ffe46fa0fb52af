import type { ColumnType, Kysely } from 'kysely'
import type { Role } from '../../../core/call/index.ts'
import type { ChangeAction } from '../../../core/change-log/index.ts'
import type { TicketStatus } from '../../../core/tickets/index.ts'
import type { Period } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { TaskState, VideoTask } from '../../../ledger/tasks/task.ts'
import type { WebhookEventType, WebhookFormat } from '../../../management/webhooks/index.ts'
import type { CALL_COLUMNS, CHARGE_COLUMNS } from '../ledger/charge-rows.ts'
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

type CallsTable = RowOf<typeof CALL_COLUMNS>

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
type ChargesTable = RowOf<typeof CHARGE_COLUMNS>

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
export interface Tables extends WebhookTables {
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
  upstream_resources: UpstreamResourcesTable
  line_switches: LineSwitchesTable
  rest_lifts: RestLiftsTable
  operators: OperatorsTable
  operator_sessions: OperatorSessionsTable
  tickets: TicketsTable
  ticket_accounts: TicketAccountsTable
}

/** An open database, as {@link openDatabase} returns it. */
export type Database = Kysely<Tables>

/** The labels that calls are searched by, beside the columns of `calls`. */
export interface CallLabelsTable {
  label: string
  /** Id of the call. */
  id: string
}

/** The parts of the answers of calls with an Idempotency-Key. */
export interface AnswersTable {
  /** Id of the call. */
  id: string
  part: number
  bytes: Uint8Array
}

/** The resources that lines keep, and their owners. Ids are the upstreams'. */
export interface UpstreamResourcesTable {
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

/** One row for each account that has opened a ticket. It is locked while the account's open tickets are counted. */
export interface TicketAccountsTable {
  account: string
  opened_at: bigint
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

/* The tables of the ledger. */

/** The balance of an account, the quota of a key or the amount of a budget for a period. The figures are sums of the rows of other tables. */
export interface WalletsTable {
  /** `account:<id>`, `key:<id>` or `budget:<id>:<start>`. */
  id: WalletId
  /** 0: postpaid, or without a quota. */
  limited: number
  /** The sum of deposits and adjustments; for a key, its quota. */
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
  /** null for a deposit; an adjustment has one. */
  reason: ColumnType<string | null, string | null | undefined, never>
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

/** The places of the processes that look for leases that are not renewed. */
export interface LeaseWatchersTable {
  place: number
  owner: string | null
  /** When it has looked last, by the clock of the database. */
  seen_at: bigint
}

/** Voided charges; the amount is 0 for a void that came before its charge. Rows are only added. */
export interface VoidsTable {
  request_id: string
  account: string
  key: string | null
  amount: bigint
  at: bigint
}

/** The sum of deleted charges less deleted voids, for each wallet. */
export interface CarriedSpendingTable {
  wallet: WalletId
  amount: bigint
  /** How many charges those were; for an account only, so that each is counted once. */
  charges: bigint
}

/** Money held for video tasks that have not ended. */
export interface HoldsTable {
  /** The request id of the later charge. */
  request_id: string
  account: string
  key: string | null
  amount: bigint
}

/** The part of a hold on a budget. It is freed with its hold. */
export interface BudgetHoldsTable {
  request_id: string
  wallet: WalletId
  amount: bigint
}

export interface BudgetsTable {
  id: string
  account: string
  key: string | null
  user: string | null
  tag: string | null
  amount: bigint
  period: Period
  timezone: string
  hard: number
  /** As JSON. */
  soft: string
  created_at: bigint
  /** The number of the last change of any budget. */
  version: bigint
  deleted: number
}

/** The events of the periods of budgets. */
export interface BudgetNoticesTable {
  /** The id of the event. */
  id: string
  wallet: WalletId
  /** It is due once the wallet has spent this. */
  amount: bigint
  type: string
  subject: string
  data: string
  /** 1: it is recorded, or one like it was. It stays with its wallet, so that it is recorded once. */
  sent: number
}

/**
 * The usage of calls. The dimensions of a row are those that its grain distinguishes; the others are empty,
 * as are those that a call does not have.
 */
export interface UsageTable {
  account: string
  grain: number
  /** Where the hour, the day or the month begins, in hours since the epoch; for the grain of minutes, the minute. */
  hour: bigint
  /** Of all dimensions that follow: an index row must be small. */
  digest: string
  key: string
  model: string
  line: string
  user_id: string
  /** As JSON. */
  tags: string
  requests: bigint
  refused: bigint
  failed: bigint
  input_tokens: bigint
  cached_input_tokens: bigint
  output_tokens: bigint
  images: bigint
  milliseconds: bigint
  charged: bigint
  cost: bigint
  d0: bigint
  d1: bigint
  d2: bigint
  d3: bigint
  d4: bigint
  d5: bigint
  d6: bigint
  d7: bigint
  d8: bigint
  d9: bigint
  d10: bigint
  d11: bigint
}

/** How far something has come, by its name. */
export interface UsageMarksTable {
  name: string
  mark: string
}

/** Work on the tables that one process at a time does. */
export interface UpkeepTable {
  name: string
  /** The process that does it; null: none. */
  owner: string | null
  /** When another process may take it over, if its owner has not said by then that it goes on; in milliseconds since the epoch. */
  until: bigint | null
  /** How far it has come. */
  mark: string | null
}

/** Receivers of events. */
export interface WebhooksTable {
  id: string
  url: string
  /** The types of events that it receives, as a JSON list; null = all. */
  events: string | null
  description: string | null
  secret: string
  /** The secret before the last rotation, which signs beside the new one for a while. */
  old_secret: string | null
  old_secret_until: bigint | null
  /** When the receiver said that it is gone. */
  disabled_at: bigint | null
  /** How many deliveries were dropped because too many waited. */
  dropped: bigint
  created_at: bigint
  format: WebhookFormat
}

/** The outbox: events, written in the transactions of what they report. */
export interface WebhookEventsTable {
  id: string
  type: WebhookEventType
  subject: string
  at: bigint
  /** As JSON. */
  data: string
  /** 1 once it has its deliveries. */
  addressed: number
}

export interface WebhookDeliveriesTable {
  /** The order of delivery within a webhook and a subject. */
  position: bigint
  webhook: string
  event: string
  subject: string
  /** The queue in which it waits, the one of the lowest number first. */
  queue: number
  /** Its owner in that queue. */
  share: string
  /** When it is its turn there: the first of each share, then the second of each. */
  turn: bigint
  created_at: bigint
  attempts: number
  /** The process that attempts it; null if none does. */
  owner: string | null
  /** When the next attempt is due, or when the claim of the owner ends; null once it has ended. */
  next_at: bigint | null
  /** The status and the error of the last attempt. */
  status: number | null
  error: string | null
  delivered_at: bigint | null
}

/** The state of a subject that was announced last. */
export interface WebhookStatesTable {
  subject: string
  state: string
  at: bigint
}

/** One row. */
export interface WebhookPositionsTable {
  /** The last position that was given to a delivery. */
  last: bigint
}

/** The tables of webhooks. */
interface WebhookTables {
  webhooks: WebhooksTable
  webhook_events: WebhookEventsTable
  webhook_deliveries: WebhookDeliveriesTable
  webhook_states: WebhookStatesTable
  webhook_positions: WebhookPositionsTable
}
