import { formatAmount } from '../../core/catalog/index.ts'
import {
  type ChangeOrigin,
  changedObject,
  changedSettings,
  type RecordedChange,
} from '../../core/change-log/index.ts'
import { type Budget, type BudgetTerms, budgetWallet } from '../../ledger/budgets/budget.ts'
import { periodAt } from '../../ledger/budgets/budget-period.ts'
import type { BudgetChanges } from '../../ledger/budgets/budgets.ts'
import type { WalletId } from '../../ledger/index.ts'

/** Most budgets of an account. */
export const MAX_BUDGETS = 1000

/** Selects budgets, by id. */
export interface BudgetQuery {
  readonly account?: string | undefined
  /** Selects budgets behind this id. */
  readonly after?: string | undefined
  readonly limit: number
}

/**
 * The result of a creation.
 *
 * - `no_account`, `no_key`: there is no such account, or it has no such key.
 * - `too_many`: the account has {@link MAX_BUDGETS} budgets.
 */
export type BudgetCreation = 'created' | 'no_account' | 'no_key' | 'too_many'

/**
 * A store for budgets. Each operation is one transaction, which includes the record of the change and the wallets of the
 * ledger. Operations reject if the store cannot be reached.
 */
export interface BudgetStore {
  list(query: BudgetQuery): Promise<readonly Budget[]>

  find(id: string): Promise<Budget | undefined>

  create(budget: Budget, origin: ChangeOrigin): Promise<BudgetCreation>

  /**
   * Replaces the terms of a budget, also for the period that is running. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new terms for the current ones, while no other change runs.
   * @returns the budget as it is now; undefined if there is none.
   */
  change(
    id: string,
    revise: (terms: BudgetTerms) => BudgetTerms,
    origin: ChangeOrigin,
  ): Promise<Budget | undefined>

  /** Deletes a budget. Its counters stay in the ledger. Returns false if there is none. */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>

  /** Returns the budgets that have changed since a version, or some of them, deleted ones included; 0 for all. */
  changes(since: number): Promise<BudgetChanges>

  /** Records `budget.exhausted`, unless that was recorded for this period, because the budget has refused a call. */
  noteRefusal(wallet: WalletId, at: number): Promise<void>
}

/** Returns the record of a budget that was created or deleted. */
export function budgetChange(
  action: 'budget.created' | 'budget.deleted',
  budget: Budget,
  origin: ChangeOrigin,
): RecordedChange {
  return changedObject(action, budget.id, describeSettings(budget), origin)
}

/** Returns the record of changed terms; undefined if nothing changed. */
export function budgetTermsChange(
  budget: Budget,
  previous: Budget,
  origin: ChangeOrigin,
): RecordedChange | undefined {
  const sides = { before: describeSettings(previous), after: describeSettings(budget) }
  return changedSettings('budget.changed', budget.id, sides, origin)
}

/** Returns the settings as the API answers them. */
export function describeSettings({ scope, amount, period, timezone, hard, soft }: Budget) {
  const { account, key, user, tag } = scope
  return { scope: { account, key, user, tag }, amount: formatAmount(amount), period, timezone, hard, soft }
}

/**
 * Returns the wallets that a change of the terms concerns: of the running period and, because the clock of another process
 * may be ahead, of the next.
 */
export function walletsToChange({ id, period, timezone }: Budget, at: number): WalletId[] {
  const { start, end } = periodAt(period, timezone, at)
  const starts = Number.isFinite(end) ? [start, end] : [start]
  return starts.map((time) => budgetWallet(id, time))
}
