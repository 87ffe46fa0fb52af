import { assertFigure } from '../../../core/catalog/money.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { LeaseRecord, WalletFigures } from '../../../ledger/lease.ts'
import { toNumber } from '../driver/nullable-cells.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import type { LeasesTable, WalletsTable } from './ledger-tables.ts'

/*
 * All who write wallets and leases lock them first, in the order of their ids, wallets before leases: no two ever wait
 * for each other. SQLite has but one writer.
 */

/** A locked wallet, to be changed and saved. */
export interface LockedWallet extends WalletFigures {
  readonly id: WalletId
}

const WALLETS = 'select found.* from given join wallets as found on found.id = given.id'
const FIND_WALLETS = RowStatement.select<WalletsTable>({ id: 'text' }, WALLETS)
const LOCK_WALLETS = RowStatement.select<WalletsTable>({ id: 'text' }, WALLETS, { locks: true })

const WALLET_COLUMNS = {
  id: 'text',
  limited: 'bigint',
  funds: 'bigint',
  spent: 'bigint',
  leased: 'bigint',
  overrun: 'bigint',
} as const satisfies Record<keyof WalletsTable, 'text' | 'bigint'>

const SAVE_WALLETS = RowStatement.update(
  'wallets',
  WALLET_COLUMNS,
  `limited = given.limited, funds = given.funds, spent = given.spent, leased = given.leased,
    overrun = given.overrun`,
  'found.id = given.id',
)

/** Reads wallets. Unknown wallets are left out. */
export async function findWallets(
  db: Database,
  ids: Iterable<WalletId>,
  statement = FIND_WALLETS,
): Promise<Map<WalletId, LockedWallet>> {
  const { rows } = await statement.run(
    db,
    Array.from(new Set(ids), (id) => [id]),
  )
  return new Map(rows.map((row) => [row.id, { ...row, limited: row.limited !== 0 }]))
}

/** Locks wallets until the transaction ends. Unknown wallets are left out. */
export function lockWallets(trx: Database, ids: Iterable<WalletId>): Promise<Map<WalletId, LockedWallet>> {
  return findWallets(trx, ids, LOCK_WALLETS)
}

/**
 * Saves locked wallets.
 *
 * @throws RangeError if a figure does not fit the database.
 */
export async function saveWallets(trx: Database, wallets: Iterable<LockedWallet>): Promise<void> {
  await SAVE_WALLETS.run(
    trx,
    Array.from(wallets, ({ id, limited, funds, spent, leased, overrun }) => [
      id,
      Number(limited),
      assertFigure(funds, `funds of "${id}"`),
      assertFigure(spent, `spent of "${id}"`),
      assertFigure(leased, `leased of "${id}"`),
      assertFigure(overrun, `overrun of "${id}"`),
    ]),
  )
}

const LEASE_COLUMNS = {
  id: 'text',
  wallet: 'text',
  owner: 'text',
  held: 'bigint',
  seq: 'bigint',
  last_moved: 'bigint',
  beats: 'bigint',
  renewed_at: 'bigint',
  ended: 'text',
  ended_at: 'bigint',
} as const satisfies Record<keyof LeasesTable, 'text' | 'bigint'>

const LEASES = 'select found.* from given join leases as found on found.id = given.id'
const FIND_LEASES = RowStatement.select<LeasesTable>({ id: 'text' }, LEASES)
const LOCK_LEASES = RowStatement.select<LeasesTable>({ id: 'text' }, LEASES, { locks: true })

const SAVE_LEASES = RowStatement.insert(
  'leases',
  LEASE_COLUMNS,
  `on conflict (id) do update set held = excluded.held, seq = excluded.seq, last_moved = excluded.last_moved,
    beats = excluded.beats, renewed_at = excluded.renewed_at, ended = excluded.ended, ended_at = excluded.ended_at`,
)

/** Reads leases, ended ones included. Unknown leases are left out. */
export async function findLeases(
  db: Database,
  ids: Iterable<string>,
  statement = FIND_LEASES,
): Promise<Map<string, LeaseRecord>> {
  const { rows } = await statement.run(
    db,
    Array.from(new Set(ids), (id) => [id]),
  )
  return new Map(rows.map((row) => [row.id, toLease(row)]))
}

/** Locks leases until the transaction ends, ended ones included. Unknown leases are left out. */
export function lockLeases(trx: Database, ids: Iterable<string>): Promise<Map<string, LeaseRecord>> {
  return findLeases(trx, ids, LOCK_LEASES)
}

/** Saves locked or new leases. */
export async function saveLeases(trx: Database, leases: Iterable<LeaseRecord>): Promise<void> {
  await SAVE_LEASES.run(
    trx,
    Array.from(leases, (lease) => [
      lease.id,
      lease.wallet,
      lease.owner,
      lease.held,
      lease.seq,
      lease.lastMoved,
      lease.beats,
      lease.renewedAt,
      lease.ended,
      lease.endedAt,
    ]),
  )
}

function toLease({ last_moved, renewed_at, ended_at, ...row }: LeasesTable): LeaseRecord {
  return {
    ...row,
    lastMoved: last_moved,
    renewedAt: Number(renewed_at),
    endedAt: toNumber(ended_at),
  }
}
