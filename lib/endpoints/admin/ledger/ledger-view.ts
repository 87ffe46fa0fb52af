/** What the wallet of an account or a key comes to, in nano-units. */
export interface WalletFigures {
  /** `account:<id>` or `key:<id>` */
  readonly wallet: string
  /** Deposited so far; of a key, its quota. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes, and for video tasks that are not over. */
  readonly leased: bigint
}

/** A lease that a process has on the wallet of an account or a key. */
export interface LeaseFigures {
  readonly id: string
  /** `account:<id>` or `key:<id>` */
  readonly wallet: string
  /** The process that has it. */
  readonly owner: string
  /** In nano-units. */
  readonly held: bigint
  /** Milliseconds since the epoch, by the clock of the process that renewed it last. */
  readonly renewedAt: number
}

/** The ledger's rules recomputed from its rows: sums over all accounts, and each rule that does not hold, in words. */
export interface LedgerFigures {
  readonly violations: readonly string[]
  readonly accounts: number
  readonly charges: number
  readonly deposited: bigint
  readonly spent: bigint
  readonly leased: bigint
}

/** What the admin API reads of the ledger. `MemoryLedger` and `SqlLedger` fit as they are. */
export interface LedgerView {
  /** Those that the ledger does not know are left out. */
  wallets(ids: readonly (`account:${string}` | `key:${string}`)[]): Promise<readonly WalletFigures[]>
  /** All open leases. */
  leases(): Promise<readonly LeaseFigures[]>
  /** Everything as of one moment. */
  check(): Promise<LedgerFigures>
}
