import type { WalletId } from './wallet.ts'

/**
 * Thrown by a ledger that answers, and cannot have the rows of some wallets: another transaction has locked them. Nothing of
 * the operation was done. The rest of it can be done at once, without these wallets.
 */
export class WalletsLocked extends Error {
  override readonly name = 'WalletsLocked'
  readonly wallets: ReadonlySet<WalletId>

  constructor(wallets: ReadonlySet<WalletId>, options: ErrorOptions = {}) {
    super(`another transaction has locked rows of ${[...wallets].slice(0, 3).join(', ')}`, options)
    this.wallets = wallets
  }
}
