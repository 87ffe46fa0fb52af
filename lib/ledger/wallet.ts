import { assertAmount, formatAmount } from '../core/catalog/money.ts'

/**
 * The id of a wallet, which has an account's balance, a key's quota or a budget's amount for a period: `account:acme`,
 * `key:key_acme`, `budget:<id>:<start of the period>`. Operations on
 * several wallets lock them in the order of these ids, so that no two of them wait for each other.
 */
export type WalletId = `account:${string}` | `key:${string}` | `budget:${string}`

/** Returns the wallet of an account's balance. */
export function accountWallet(accountId: string): WalletId {
  return `account:${accountId}`
}

/** Returns the wallet of a key's quota. */
export function keyWallet(keyId: string): WalletId {
  return `key:${keyId}`
}

/** The account and key that a charge or a hold counts against. */
export interface Spender {
  readonly account: string
  /** null if no key pays. */
  readonly key: string | null
  /** The wallets of its budgets. Absent: none. */
  readonly budgets?: readonly WalletId[] | undefined
}

/** Returns the wallets that a charge or a hold counts on. */
export function walletsOf({ account, key, budgets = [] }: Spender): WalletId[] {
  if (key === null) return [accountWallet(account), ...budgets]
  return [accountWallet(account), ...budgets, keyWallet(key)]
}

/** The sums of a wallet without deposits and charges. */
export const NO_FUNDS = { funds: 0n, spent: 0n, leased: 0n }

/** Returns the sums of an account's wallet as endpoints show them. Without a wallet, it has neither deposits nor charges. */
export function describeFunds({ funds, spent, leased }: Readonly<typeof NO_FUNDS> = NO_FUNDS) {
  return {
    deposited: formatAmount(funds),
    spent: formatAmount(spent),
    balance: formatAmount(funds - spent),
    leased: formatAmount(leased),
    available: formatAmount(funds - spent - leased),
  }
}

/**
 * @throws TypeError if an account is given a quota.
 * @throws RangeError if the quota is not a valid amount.
 */
export function assertLimit(wallet: WalletId, { quota }: { readonly quota?: bigint }): void {
  if (quota === undefined) return
  if (wallet.startsWith('account:'))
    throw new TypeError(`wallet "${wallet}": an account's funds change by deposits`)
  assertAmount(quota, `wallet "${wallet}"`)
}
