/**
 * The id of a wallet, which has an account's balance or a key's quota: `account:acme`, `key:key_acme`. Operations on
 * several wallets lock them in the order of these ids, so that no two of them wait for each other.
 */
export type WalletId = `account:${string}` | `key:${string}`

/** Returns the wallet of an account's balance. */
export function accountWallet(accountId: string): WalletId {
  return `account:${accountId}`
}

/** Returns the wallet of a key's quota. */
export function keyWallet(keyId: string): WalletId {
  return `key:${keyId}`
}
