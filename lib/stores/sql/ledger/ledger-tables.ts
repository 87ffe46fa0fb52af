import type { ColumnType } from 'kysely'
import type { Period } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'

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

/** The places of the processes that look for leases nobody renews. */
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
  /** 1: usage no longer has its charge; null: not yet. */
  counted: number | null
}

/** What deleted charges less deleted voids came to, for each wallet. */
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

/** The part of a hold on a budget. It is freed with its hold, or a while later if a process that knows no budgets ends that. */
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
  /** 1: it is told, or one like it was. It stays with its wallet, so that it is told once. */
  told: number
}
