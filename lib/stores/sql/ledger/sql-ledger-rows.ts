import type { WalletId } from '../../../ledger/index.ts'
import type { LeaseRecord, WalletFigures } from '../../../ledger/lease.ts'
import { toNumber } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database, LeasesTable, WalletsTable } from '../driver/tables.ts'

/*
 * Reads the rows that operations of the ledger plan with. No lock is held: the writes of a plan fail if the rows have changed.
 */

interface FoundWallet extends WalletFigures {
  readonly id: WalletId
}

const FIND_WALLETS = RowStatement.select<WalletsTable>(
  { id: 'text' },
  'select found.* from given join wallets as found on found.id = given.id',
)

/** Reads wallets. Unknown wallets are left out. */
export async function findWallets(
  db: Database,
  ids: Iterable<WalletId>,
): Promise<Map<WalletId, FoundWallet>> {
  const { rows } = await FIND_WALLETS.run(
    db,
    Array.from(new Set(ids), (id) => [id]),
  )
  return new Map(rows.map((row) => [row.id, { ...row, limited: row.limited !== 0 }]))
}

const FIND_LEASES = RowStatement.select<LeasesTable>(
  { id: 'text' },
  'select found.* from given join leases as found on found.id = given.id',
)

/** Reads leases, ended ones included. Unknown leases are left out. */
export async function findLeases(db: Database, ids: Iterable<string>): Promise<Map<string, LeaseRecord>> {
  const { rows } = await FIND_LEASES.run(
    db,
    Array.from(new Set(ids), (id) => [id]),
  )
  return new Map(rows.map((row) => [row.id, toLease(row)]))
}

function toLease({ last_moved, renewed_at, ended_at, ...row }: LeasesTable): LeaseRecord {
  return {
    ...row,
    lastMoved: last_moved,
    renewedAt: Number(renewed_at),
    endedAt: toNumber(ended_at),
  }
}
