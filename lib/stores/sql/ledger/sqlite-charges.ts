import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { NewCharge } from './sql-ledger-charges.ts'

/** Whose charge it was, and what it came to. */
export interface StandingCharge {
  readonly account: string
  readonly key: string | null
  readonly amount: bigint
}

/** Writes charges and voids, one by one; neither is ever changed or deleted. */
export class SqliteCharges {
  readonly #insert: StatementSync
  readonly #find: StatementSync
  readonly #findVoid: StatementSync
  readonly #void: StatementSync

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(
      `insert into charges (request_id, account, key, amount, at, basis) select ?1, ?2, ?3, ?4, ?5, ?6
      where not exists (select 1 from voids where request_id = ?1) on conflict (request_id) do nothing`,
    )
    this.#find = db.prepare('select account, key, amount from charges where request_id = ?')
    this.#find.setReadBigInts(true)
    this.#findVoid = db.prepare('select 1 from voids where request_id = ?')
    this.#void = db.prepare(
      `insert into voids (request_id, account, key, amount, at) values (?, ?, ?, ?, ?)
      on conflict (request_id) do nothing`,
    )
  }

  /** Writes a charge that is neither there nor voided; answers whether it did. */
  insert({ requestId, account, key, amount, at, basis }: NewCharge): boolean {
    return this.#insert.run(requestId, account, key, amount, at, basis).changes !== 0
  }

  find(requestId: string): StandingCharge | undefined {
    return this.#find.get(requestId) as StandingCharge | undefined
  }

  isVoided(requestId: string): boolean {
    return this.#findVoid.get(requestId) !== undefined
  }

  /** Writes a void that is not there, of the charge that it undoes or of nothing; answers whether it did. */
  void(asked: NewCharge, charged: StandingCharge | undefined): boolean {
    const { account, key, amount } = charged ?? { account: asked.account, key: asked.key, amount: 0n }
    return this.#void.run(asked.requestId, account, key, amount, asked.at).changes !== 0
  }
}
