import { type RawBuilder, sql } from 'kysely'
import { assertFigure } from '../../../ledger/amounts.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { LeaseRecord, WalletFigures } from '../../../ledger/lease.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database, LeasesTable, WalletsTable } from '../driver/tables.ts'

/*
 * All who write wallets and leases lock them first, in the order of their ids, wallets before leases: no two ever wait
 * for each other. SQLite has but one writer.
 */

/** A wallet as it was when it was locked, to be changed and saved. */
export interface LockedWallet extends WalletFigures {
  readonly id: WalletId
}

/** Reads, opens and saves wallets for a transaction. */
export class WalletRows {
  readonly #lock: RowStatement<WalletsTable>
  readonly #open: RowStatement
  readonly #save: RowStatement

  constructor(db: Database) {
    this.#lock = new RowStatement(
      db,
      { id: 'text' },
      sql`
      select id, limited, funds, spent, leased, overrun from wallets
      where id in (select id from given) order by id ${forUpdate(db)}`,
    )
    this.#open = new RowStatement(
      db,
      { id: 'text', limited: 'bigint' },
      sql`
      insert into wallets (id, limited, funds, spent, leased, overrun)
      select id, limited, 0, 0, 0, 0 from given where true order by id
      on conflict (id) do nothing`,
    )
    this.#save = new RowStatement(
      db,
      {
        id: 'text',
        limited: 'bigint',
        funds: 'bigint',
        spent: 'bigint',
        leased: 'bigint',
        overrun: 'bigint',
      },
      sql`
      update wallets set limited = given.limited, funds = given.funds, spent = given.spent,
        leased = given.leased, overrun = given.overrun
      from given where wallets.id = given.id`,
    )
  }

  /** Those that are there, locked until the transaction ends. */
  async lock(trx: Database, ids: Iterable<WalletId>): Promise<Map<WalletId, LockedWallet>> {
    const rows = await this.#lock.run(
      trx,
      Array.from(new Set(ids), (id) => [id]),
    )
    return new Map(rows.map((row) => [row.id, { ...row, limited: row.limited !== 0 }]))
  }

  /** Opens wallets that are not there, and locks them all. */
  async open(
    trx: Database,
    ids: readonly WalletId[],
    limited: boolean,
  ): Promise<Map<WalletId, LockedWallet>> {
    if (ids.length === 0) return new Map()
    await this.#open.run(
      trx,
      ids.map((id) => [id, Number(limited)]),
    )
    return this.lock(trx, ids)
  }

  /** @throws RangeError when a figure has grown beyond what the database holds. */
  async save(trx: Database, wallets: Iterable<LockedWallet>): Promise<void> {
    await this.#save.run(
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

/** Reads and saves leases for a transaction that has locked their wallets. */
export class LeaseRows {
  readonly #lock: RowStatement<LeasesTable>
  readonly #save: RowStatement

  constructor(db: Database) {
    const columns = sql.join(Object.keys(LEASE_COLUMNS).map((name) => sql.ref(name)))
    this.#lock = new RowStatement(
      db,
      { id: 'text' },
      sql`select ${columns} from leases where id in (select id from given) order by id ${forUpdate(db)}`,
    )
    this.#save = new RowStatement(
      db,
      LEASE_COLUMNS,
      sql`
      insert into leases (${columns}) select ${columns} from given where true
      on conflict (id) do update set held = excluded.held, seq = excluded.seq, last_moved = excluded.last_moved,
        beats = excluded.beats, renewed_at = excluded.renewed_at, ended = excluded.ended, ended_at = excluded.ended_at`,
    )
  }

  /** Those that are there, ended ones included, locked until the transaction ends. */
  async lock(trx: Database, ids: Iterable<string>): Promise<Map<string, LeaseRecord>> {
    const rows = await this.#lock.run(
      trx,
      Array.from(new Set(ids), (id) => [id]),
    )
    return new Map(rows.map((row) => [row.id, toLease(row)]))
  }

  async save(trx: Database, leases: Iterable<LeaseRecord>): Promise<void> {
    await this.#save.run(
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
}

/** What locks the rows that a query finds. */
function forUpdate(db: Database): RawBuilder<unknown> {
  return isPostgres(db) ? sql`for update` : sql``
}

function toLease({ last_moved, renewed_at, ended_at, ...row }: LeasesTable): LeaseRecord {
  const endedAt = ended_at === null ? null : Number(ended_at)
  return { ...row, lastMoved: last_moved, renewedAt: Number(renewed_at), endedAt }
}
