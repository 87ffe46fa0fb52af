import type { BudgetPeriod } from './budgets/budget.ts'
import { stateOf, type WalletFigures } from './lease.ts'
import { payersOf } from './payers.ts'

/*
 * Money held for one thing that goes on longer than any process: a part of `leased`, which no sweep touches. It is held
 * on the wallets of account and key, whether they are limited or not, until it is closed.
 */

/** The payer of a hold and the highest cost. */
export interface Hold {
  /** The request id of the later charge. */
  readonly id: string
  readonly account: string
  /** null if no key pays. */
  readonly key: string | null
  /** In nano-units. */
  readonly amount: bigint
  /** The budgets that it counts against. Absent: none. */
  readonly budgets?: readonly BudgetPeriod[] | undefined
}

/** Why money cannot be held. Amounts are nano-units, for the call log only. */
export interface HoldRefusal {
  readonly refused: 'key_quota_exhausted' | 'insufficient_balance' | 'quota_lease_exhausted'
  readonly required: bigint
  readonly available: bigint
  /** The budget that refuses; absent if none does. */
  readonly budget?: BudgetPeriod
}

/** The wallets of a hold. undefined: the ledger does not know the wallet. An unknown account is refused. */
export interface HoldWallets {
  readonly account: WalletFigures | undefined
  /** null if no key pays. An unknown key has no quota. */
  readonly key: WalletFigures | undefined | null
  /** Absent: none. */
  readonly budgets?: readonly { readonly budget: BudgetPeriod; readonly wallet: WalletFigures | undefined }[]
}

/**
 * Returns why an amount cannot be held; undefined if it can. The key is checked before the account, and what is spent
 * before what is only held at the moment.
 */
export function judgeHold(
  { account, key, budgets = [] }: HoldWallets,
  amount: bigint,
): HoldRefusal | undefined {
  if (amount === 0n) return undefined
  // A budget that was deleted a moment ago limits nothing.
  const known = budgets.filter(({ wallet }) => wallet !== undefined)
  const payers = payersOf(account, key ?? null, known).map(({ wallet, ...refusal }) => ({
    ...refusal,
    reach: reachOf(wallet),
  }))
  for (const { reach, ...refusal } of payers)
    if (reach && amount > reach.balance) return { ...refusal, required: amount, available: reach.balance }
  for (const { reach, ...refusal } of payers) {
    if (!reach || amount <= reach.available) continue
    return { ...refusal, refused: 'quota_lease_exhausted', required: amount, available: reach.available }
  }
  return undefined
}

/**
 * Returns what a limited wallet would have if all leases and holds were returned, and what it has now; undefined for an
 * unlimited wallet.
 */
function reachOf(wallet: WalletFigures | undefined): { balance: bigint; available: bigint } | undefined {
  if (!wallet) return { balance: 0n, available: 0n }
  const { limited, funds, spent, leased } = stateOf(wallet)
  return limited ? { balance: funds - spent, available: funds - spent - leased } : undefined
}
