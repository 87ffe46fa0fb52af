import { formatAmount } from '../../../core/catalog/index.ts'
import { type ChangeOrigin, changedSettings, type RecordedChange } from '../../../core/change-log/index.ts'
import { type Budget, budgetWallet } from '../../../ledger/budgets/budget.ts'
import { periodAt } from '../../../ledger/budgets/budget-period.ts'
import type { WalletId } from '../../../ledger/index.ts'

/** Returns the record of a budget that was created or deleted. */
export function budgetChange(
  action: 'budget.created' | 'budget.deleted',
  budget: Budget,
  origin: ChangeOrigin,
): RecordedChange {
  const settings = describeSettings(budget)
  const sides =
    action === 'budget.created' ? { before: null, after: settings } : { before: settings, after: null }
  return { ...origin, action, subject: budget.id, ...sides }
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
