/**
 * What money is kept for: an account's balance, or a key's quota. `account:acme`, `key:key_acme`. All that touches
 * several wallets does so in the order of these names, so that no two ever wait for each other.
 */
export type WalletId = `account:${string}` | `key:${string}`

/** The wallet that holds an account's balance. */
export function accountWallet(accountId: string): WalletId {
  return `account:${accountId}`
}

/** The wallet that holds what a key may still spend. */
export function keyWallet(keyId: string): WalletId {
  return `key:${keyId}`
}
