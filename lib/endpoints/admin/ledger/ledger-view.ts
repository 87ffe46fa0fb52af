import type { LedgerCheck, WalletId } from '../../../ledger/index.ts'

/** The sums of a wallet, in nano-units. */
export interface WalletFigures {
  /** `account:<id>`, `key:<id>` or `budget:<id>:<start>` */
  readonly wallet: string
  /** The sum of deposits and adjustments; for a key, its quota. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes and by video tasks that have not ended. */
  readonly leased: bigint
}

/** A lease of a process on a wallet. */
export interface LeaseFigures {
  readonly id: string
  /** `account:<id>`, `key:<id>` or `budget:<id>:<start>` */
  readonly wallet: string
  /** The process that holds the lease. */
  readonly owner: string
  /** In nano-units. */
  readonly held: bigint
  /** When it was renewed last, in milliseconds since the epoch by the clock of its process. */
  readonly renewedAt: number
}

/** The operations of a ledger that the admin API needs. `MemoryLedger` and `SqlLedger` have them. */
export interface LedgerView {
  /** Returns wallets. An unknown one is left out. */
  wallets(ids: readonly WalletId[]): Promise<readonly WalletFigures[]>
  /** Returns all open leases. */
  leases(): Promise<readonly LeaseFigures[]>
  /** Recomputes the ledger from its rows, all as of one moment. */
  check(): Promise<LedgerCheck>
}

/** Returns the wallets of accounts or keys, by their ids. */
export async function walletsOf(
  ledger: LedgerView,
  kind: 'account' | 'key',
  listed: readonly { readonly id: string }[],
): Promise<ReadonlyMap<string, WalletFigures>> {
  if (listed.length === 0) return new Map()
  const wallets = await ledger.wallets(listed.map(({ id }) => `${kind}:${id}` as const))
  return new Map(wallets.map((figures) => [figures.wallet.slice(kind.length + 1), figures]))
}
