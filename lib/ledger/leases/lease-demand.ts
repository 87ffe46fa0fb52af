import { LARGEST_AMOUNT } from '../amounts.ts'
import type { LeaseChange } from '../ledger.ts'

/** What calls and the future want of a wallet, in nano-units. */
export interface LeaseDemand {
  /** Of the calls that wait, in the order in which they are served. */
  readonly amounts: readonly bigint[]
  /** What the lease holds, and what of that is free. */
  readonly granted: bigint
  readonly free: bigint
  /** What is free here and available there; undefined where that is not known. */
  readonly reach: bigint | undefined
  /** What the lease should hold. */
  readonly target: bigint
}

/**
 * What to ask the ledger for: it has to give as much as all that wait lack, or as many of them as can be served at all.
 * What is wanted beyond that is for the ledger to decide.
 */
export function takeFor({ amounts, granted, free, reach, target }: LeaseDemand): LeaseChange['change'] {
  const all = amounts.reduce((sum, amount) => sum + amount, 0n)
  let served = all
  if (reach !== undefined) {
    served = amounts.reduce((sum, amount) => (sum + amount <= reach ? sum + amount : sum), 0n)
    if (served === 0n) served = amounts[0] ?? 0n
  }
  const need = served - free
  const want = greatest(need, all - free, target - granted)
  return { kind: 'take', need: bounded(need), want: bounded(want) }
}

/** An amount that a ledger takes. */
export function bounded(amount: bigint): bigint {
  return least(greatest(amount, 0n), LARGEST_AMOUNT)
}

export function least(first: bigint, ...others: readonly bigint[]): bigint {
  let least = first
  for (const each of others) if (each < least) least = each
  return least
}

export function greatest(first: bigint, ...others: readonly bigint[]): bigint {
  let greatest = first
  for (const each of others) if (each > greatest) greatest = each
  return greatest
}
