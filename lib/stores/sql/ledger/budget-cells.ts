import type { WalletId } from '../../../ledger/index.ts'

/** Returns wallets of budgets as JSON; null for none. */
export function writeWallets(wallets: readonly WalletId[] | undefined): string | null {
  return wallets === undefined || wallets.length === 0 ? null : JSON.stringify(wallets)
}

/** Reads what {@link writeWallets} wrote. */
export function readWallets(cell: string | null): readonly WalletId[] | undefined {
  return cell === null ? undefined : (JSON.parse(cell) as WalletId[])
}
