import { stateOf, type WalletFigures } from './lease.ts'

/*
 * Money held for one thing that goes on longer than any process: a part of `leased`, which no sweep touches. It is held
 * on the wallets of account and key, whether they are limited or not, until it is closed.
 */

/** Who pays, and the most that it can be. */
export interface Hold {
  /** The request id that what it is for will be charged under. */
  readonly id: string
  readonly account: string
  /** null where nobody's key pays. */
  readonly key: string | null
  /** Nano-units. */
  readonly amount: bigint
}

/** Why money could not be held; amounts are nano-units, for the call log only. */
export interface HoldRefusal {
  readonly refused: 'key_quota_exhausted' | 'insufficient_balance' | 'quota_lease_exhausted'
  readonly required: bigint
  readonly available: bigint
}

/** The wallets of a hold; undefined where the ledger does not know one, which then is not served. */
export interface HoldWallets {
  readonly account: WalletFigures | undefined
  /** null where nobody's key pays. */
  readonly key: WalletFigures | undefined | null
}

/**
 * Returns why an amount may not be held; undefined where it may. The key is judged first, and what is spent before what
 * is only held at the moment.
 */
export function judgeHold({ account, key }: HoldWallets, amount: bigint): HoldRefusal | undefined {
  if (amount === 0n) return undefined
  const ofKey = key === null ? undefined : reachOf(key)
  const ofAccount = reachOf(account)
  const refusal = (refused: HoldRefusal['refused'], available: bigint): HoldRefusal => {
    return { refused, required: amount, available }
  }
  if (ofKey && amount > ofKey.balance) return refusal('key_quota_exhausted', ofKey.balance)
  if (ofAccount && amount > ofAccount.balance) return refusal('insufficient_balance', ofAccount.balance)
  for (const reach of [ofKey, ofAccount]) {
    if (reach && amount > reach.available) return refusal('quota_lease_exhausted', reach.available)
  }
  return undefined
}

/**
 * Closes what is held on a wallet.
 *
 * @param cost what is charged for it; beyond what was held it is an overrun. undefined: nothing.
 */
export function closeHold(wallet: WalletFigures, held: bigint, cost?: bigint): void {
  wallet.leased -= held
  if (cost === undefined) return
  wallet.spent += cost
  if (cost > held) wallet.overrun += cost - held
}

/** What a limited wallet has with all leases and holds given back, and without; undefined for one without limits. */
function reachOf(wallet: WalletFigures | undefined): { balance: bigint; available: bigint } | undefined {
  if (!wallet) return { balance: 0n, available: 0n }
  const { limited, funds, spent, leased } = stateOf(wallet)
  return limited ? { balance: funds - spent, available: funds - spent - leased } : undefined
}
