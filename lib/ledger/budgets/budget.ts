import type { WalletId } from '../wallet.ts'

export const BUDGET_PERIODS = ['day', 'week', 'month', 'total'] as const
export type Period = (typeof BUDGET_PERIODS)[number]

/** The calls that a budget counts: those of the account that have all of the other members that are given. */
export interface BudgetScope {
  readonly account: string
  readonly key: string | null
  readonly user: string | null
  /** A name and a value, such as `team=search`. */
  readonly tag: string | null
}

/** The members of a budget that can be changed. */
export interface BudgetTerms {
  /** In nano-units for each period. */
  readonly amount: bigint
  /** Whether calls beyond the amount are refused. */
  readonly hard: boolean
  /** The shares of the amount that are reported when they are spent, ascending. */
  readonly soft: readonly number[]
}

/** The amount that some calls of an account may spend in each day, week or month, or in all. */
export interface Budget extends BudgetTerms {
  readonly id: string
  readonly scope: BudgetScope
  readonly period: Period
  /** The IANA time zone in which its periods begin. */
  readonly timezone: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** A budget of a call, and the period in which the call was admitted. */
export interface BudgetPeriod {
  readonly budget: string
  readonly wallet: WalletId
  readonly scope: BudgetScope
  /** The code of a call that it refuses. */
  readonly refused: 'key_quota_exhausted' | 'insufficient_balance'
  /** Milliseconds since the epoch; null if it never ends. */
  readonly endsAt: number | null
}

/** Returns the wallet of a budget for the period that begins at a time. */
export function budgetWallet(budget: string, start: number): WalletId {
  return `budget:${budget}:${start}`
}

/** Returns the id of the budget whose wallet it is; undefined for other wallets. */
export function budgetOfWallet(wallet: WalletId): string | undefined {
  return wallet.startsWith('budget:') ? wallet.slice('budget:'.length, wallet.lastIndexOf(':')) : undefined
}

/** A month, within which its period ends, and some time for those who look back. */
const KEPT_MS = 100 * 86_400_000

/** Whether the wallet of a period is kept no more: the period began so long ago that nothing can count against it. */
export function isLongPast(wallet: WalletId, at: number): boolean {
  const start = Number(wallet.slice(wallet.lastIndexOf(':') + 1))
  // Only what never ends began at 0.
  return start > 0 && start < at - KEPT_MS
}

/** Returns ids between which all wallets of a budget are that are long past, and one behind all of its wallets. */
export function longPast(budget: string, at: number): [after: WalletId, before: WalletId, last: WalletId] {
  return [budgetWallet(budget, 0), budgetWallet(budget, at - KEPT_MS), `budget:${budget}:~`]
}
