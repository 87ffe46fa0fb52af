import type { WalletId } from './wallet.ts'

/**
 * Thrown by a ledger that answers, and cannot have the rows of some wallets: another transaction has locked them. Nothing of
 * the operation was done. The rest of it can be done at once, without these wallets.
 */
export class WalletsHeldUp extends Error {
  override readonly name = 'WalletsHeldUp'
  readonly wallets: ReadonlySet<WalletId>
  /** Whether they wait for other operations of this ledger only, which end soon, and for nobody else. */
  readonly own: boolean

  constructor(wallets: ReadonlySet<WalletId>, options: ErrorOptions & { own?: boolean } = {}) {
    const { own = false } = options
    const by = own ? 'another operation of this ledger' : 'somebody else'
    super(`${by} has locked rows of ${[...wallets].slice(0, 3).join(', ')}`, options)
    this.wallets = wallets
    this.own = own
  }
}
