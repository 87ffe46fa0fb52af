import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import type { DepositOutcome } from './account-store.ts'

/** A deposit, or an adjustment, which has a reason. */
export interface KnownDeposit {
  readonly amount: bigint
  readonly at: number
  readonly reason: string | null
}

/** Returns the outcome of a deposit or adjustment whose reference was used before. */
export function repeatedDeposit(earlier: KnownDeposit, asked: Omit<KnownDeposit, 'at'>): DepositOutcome {
  const isSame = earlier.amount === asked.amount && (earlier.reason === null) === (asked.reason === null)
  return isSame ? { kind: 'known', at: earlier.at, reason: earlier.reason } : { kind: 'conflict' }
}

/** Whether 64 bits hold the sum of an account's deposits and adjustments. */
export function holdsDeposits(sum: bigint): boolean {
  return sum <= MAX_AMOUNT && sum >= -MAX_AMOUNT
}
