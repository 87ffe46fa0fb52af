import { sql } from 'kysely'
import type { Settlement } from '../../../ledger/index.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { ChargesTable, Database } from '../driver/tables.ts'

/** What stands under a request id. */
export interface Standing {
  readonly charged: boolean
  readonly voided: boolean
}

/** A charge that is to be written. */
export type NewCharge = Pick<Settlement, 'requestId' | 'account' | 'key' | 'amount' | 'at' | 'basis'>

/** A charge that was undone. */
export type UndoneCharge = Pick<ChargesTable, 'request_id' | 'account' | 'key' | 'amount'>

type StandingRow = { request_id: string } & Record<keyof Standing, number | bigint>

const ENTRY = { request_id: 'text', account: 'text', key: 'text', amount: 'bigint', at: 'bigint' } as const

/** Writes charges and voids within a transaction that has locked their wallets; neither is ever changed or deleted. */
export class ChargeRows {
  readonly #insert: RowStatement<{ request_id: string }>
  readonly #find: RowStatement<UndoneCharge>
  readonly #standing: RowStatement<StandingRow>
  readonly #void: RowStatement<{ request_id: string }>

  constructor(db: Database) {
    this.#insert = new RowStatement(
      db,
      { ...ENTRY, basis: 'text' },
      sql`
      insert into charges (request_id, account, key, amount, at, basis)
      select request_id, account, key, amount, at, basis from given
      where not exists (select 1 from voids where voids.request_id = given.request_id)
      order by request_id
      on conflict (request_id) do nothing returning request_id`,
    )
    this.#find = new RowStatement(
      db,
      { request_id: 'text' },
      sql`
      select request_id, account, key, amount from charges
      where request_id in (select request_id from given)`,
    )
    this.#standing = new RowStatement(
      db,
      { request_id: 'text' },
      sql`
      select given.request_id, case when charges.request_id is null then 0 else 1 end as charged,
        case when voids.request_id is null then 0 else 1 end as voided
      from given left join charges on charges.request_id = given.request_id
      left join voids on voids.request_id = given.request_id`,
    )
    this.#void = new RowStatement(
      db,
      ENTRY,
      sql`
      insert into voids (request_id, account, key, amount, at)
      select request_id, account, key, amount, at from given
      where true order by request_id
      on conflict (request_id) do nothing returning request_id`,
    )
  }

  /** Writes charges that are neither there nor voided; answers the request ids of those. */
  async insert(trx: Database, charges: readonly NewCharge[]): Promise<Set<string>> {
    const rows = await this.#insert.run(
      trx,
      charges.map(({ requestId, account, key, amount, at, basis }) => [
        requestId,
        account,
        key,
        amount,
        at,
        basis,
      ]),
    )
    return new Set(rows.map(({ request_id }) => request_id))
  }

  async standing(trx: Database, requestIds: readonly string[]): Promise<Map<string, Standing>> {
    const rows = await this.#standing.run(
      trx,
      requestIds.map((id) => [id]),
    )
    return new Map(
      rows.map((row) => [row.request_id, { charged: Boolean(row.charged), voided: Boolean(row.voided) }]),
    )
  }

  /** Writes voids that are not there; answers the request ids of those, and the charges that they undo. */
  async void(
    trx: Database,
    voids: readonly NewCharge[],
  ): Promise<{ written: Set<string>; undone: UndoneCharge[] }> {
    if (voids.length === 0) return { written: new Set(), undone: [] }
    const charges = await this.#find.run(
      trx,
      voids.map(({ requestId }) => [requestId]),
    )
    const byRequest = new Map(charges.map((charge) => [charge.request_id, charge]))
    const rows = await this.#void.run(
      trx,
      voids.map(({ requestId, at, ...asked }) => {
        const { account, key, amount } = byRequest.get(requestId) ?? { ...asked, amount: 0n }
        return [requestId, account, key, amount, at]
      }),
    )
    const written = new Set(rows.map(({ request_id }) => request_id))
    return { written, undone: charges.filter(({ request_id }) => written.has(request_id)) }
  }
}
