import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { Budget, BudgetTerms } from '../../../ledger/budgets/budget.ts'
import type { BudgetChanges } from '../../../ledger/budgets/budgets.ts'
import type { WalletId } from '../../../ledger/index.ts'

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
   * @param revise returns the new terms for the current ones, while nobody else changes them.
   * @returns the budget as it is now; undefined if there is none.
   */
  change(
    id: string,
    revise: (terms: BudgetTerms) => BudgetTerms,
    origin: ChangeOrigin,
  ): Promise<Budget | undefined>

  /** Deletes a budget. What it has counted stays in the ledger. Returns false if there is none. */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>

  /** Returns the budgets that have changed since a version, or some of them, deleted ones included; 0 for all. */
  changes(since: number): Promise<BudgetChanges>

  /** Tells `budget.exhausted`, unless that was told of this period, because the budget has refused a call. */
  noteRefusal(wallet: WalletId, at: number): Promise<void>
}
