import { formatAmount } from '../../core/catalog/index.ts'
import { type BudgetTerms, budgetOfWallet } from '../../ledger/budgets/budget.ts'
import type { WalletId } from '../../ledger/index.ts'
import { newEvent, type WebhookEvent } from '../webhooks/index.ts'

/** A share of a budget's amount, and the event that is sent once it is spent. */
export interface Threshold {
  readonly type: 'budget.threshold' | 'budget.exhausted'
  readonly share: number
  readonly amount: bigint
}

const SHARE_UNITS = 1_000_000

/** Returns the thresholds of a budget, ascending; the last is the whole amount. */
export function thresholdsOf({ amount, soft }: Pick<BudgetTerms, 'amount' | 'soft'>): Threshold[] {
  const shares = soft.map(
    (share): Threshold => ({
      type: 'budget.threshold',
      share,
      amount: (amount * BigInt(Math.round(share * SHARE_UNITS))) / BigInt(SHARE_UNITS),
    }),
  )
  return [...shares, { type: 'budget.exhausted', share: 1, amount }]
}

/** Returns the event of a threshold, which is the same for one period even if the amount changes. */
export function budgetEvent(
  wallet: WalletId,
  terms: Pick<BudgetTerms, 'amount'>,
  { type, share }: Threshold,
  spent: bigint,
  at: number,
): WebhookEvent {
  const budget = budgetOfWallet(wallet) ?? ''
  const data = { budget, share, amount: formatAmount(terms.amount), spent: formatAmount(spent) }
  return newEvent({ type, subject: `budget:${budget}`, at, data, once: `${wallet} ${share}` })
}
