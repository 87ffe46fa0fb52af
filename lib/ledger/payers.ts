import type { BudgetPeriod } from './budgets/budget.ts'

/** A wallet that a call needs, and the code if too little is left on it. */
export interface Payer<Wallet> {
  readonly wallet: Wallet
  readonly refused: BudgetPeriod['refused']
  /** Absent if it is no wallet of a budget. */
  readonly budget?: BudgetPeriod
}

/**
 * Returns the wallets that a call needs, in the order in which they refuse: what is narrower comes first.
 *
 * @param key null if no key pays.
 */
export function payersOf<Wallet>(
  account: Wallet,
  key: Wallet | null,
  budgets: readonly { readonly budget: BudgetPeriod; readonly wallet: Wallet }[],
): Payer<Wallet>[] {
  const ofBudgets = (refused: BudgetPeriod['refused']) =>
    budgets.flatMap(({ budget, wallet }) => (budget.refused === refused ? [{ wallet, refused, budget }] : []))
  return [
    ...(key === null ? [] : [{ wallet: key, refused: 'key_quota_exhausted' as const }]),
    ...ofBudgets('key_quota_exhausted'),
    { wallet: account, refused: 'insufficient_balance' },
    ...ofBudgets('insufficient_balance'),
  ]
}
