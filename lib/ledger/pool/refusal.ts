import type { BudgetPeriod } from '../budgets/budget.ts'
import type { BudgetLease, ReserveRefusal } from './reservation.ts'
import type { WalletLease } from './wallet-lease.ts'

/** A wallet that a call needs, and the code if too little is left on it. */
interface Payer {
  readonly lease: WalletLease
  readonly refused: BudgetPeriod['refused']
  readonly budget?: BudgetPeriod
}

/** Returns the wallets that a call needs, in the order in which they refuse: what is narrower comes first. */
export function payersOf(
  account: WalletLease,
  key: WalletLease | undefined,
  budgets: readonly BudgetLease[],
): Payer[] {
  const ofBudgets = (refused: BudgetPeriod['refused']) =>
    budgets.flatMap(({ period, lease }) =>
      period.refused === refused ? [{ lease, refused, budget: period }] : [],
    )
  return [
    ...(key ? [{ lease: key, refused: 'key_quota_exhausted' as const }] : []),
    ...ofBudgets('key_quota_exhausted'),
    { lease: account, refused: 'insufficient_balance' },
    ...ofBudgets('insufficient_balance'),
  ]
}

/**
 * Returns the refusal of a call whose money cannot become available. What is spent does not come back; what others hold
 * may.
 *
 * @param lacking the wallets that do not cover it.
 * @param reachOf returns the most that calls could get of a wallet; of the account if none is given.
 */
export function refusalOf(
  lacking: readonly Payer[],
  required: bigint,
  reachOf: (wallet: WalletLease | undefined) => bigint | undefined,
): ReserveRefusal {
  for (const { lease, ...refusal } of lacking) {
    const available = lease.snapshot.balance - lease.unhanded
    if (required > available) return { ...refusal, required, available }
  }
  const [first] = lacking
  return {
    refused: 'quota_lease_exhausted',
    required,
    available: reachOf(first?.lease) ?? null,
    ...(first?.budget && { budget: first.budget }),
  }
}
