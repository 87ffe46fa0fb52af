import type { WalletId } from '../../../ledger/index.ts'

/* The tables of regions. Figures of shares are sums since the share was opened, and never fall, but for what is spent. */

/** The accounts whose home is another region. Their rows in other tables are copies. */
export interface MirrorsTable {
  account: string
  home: string
  mirrored_at: bigint
}

/** The parts of wallets of other regions that this region has: received − returned is in the funds of the wallet. */
export interface SharesTable {
  wallet: WalletId
  home: string
  /** The number of the last report to home. */
  seq: bigint
  received: bigint
  returned: bigint
  /** What home knows, by the last report that it has answered. */
  told_spent: bigint
  told_returned: bigint
  /** The balance that the wallet had beside this share then. */
  elsewhere: bigint
  used_at: bigint
  /** 1: rounds look after it. */
  in_use: number
}

/** The parts of wallets of this region that others have. What is neither spent nor returned is leased. */
export interface LentSharesTable {
  wallet: WalletId
  region: string
  seq: bigint
  granted: bigint
  returned: bigint
  spent: bigint
  reported_at: bigint
}

/** The other regions, and which process looks after what this one has of them. */
export interface HomesTable {
  name: string
  owner: string | null
  owned_until: bigint
  /** When it last answered. */
  contact_at: bigint
}

export interface RegionTables {
  mirrors: MirrorsTable
  shares: SharesTable
  lent_shares: LentSharesTable
  homes: HomesTable
}
