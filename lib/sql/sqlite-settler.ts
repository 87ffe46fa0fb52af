import { Kysely } from 'kysely'
import type { SettlementResult } from '../billing-guard/index.ts'
import { type SettlementRow, Settling } from './sql-ledger-settle.ts'
import { NodeSqliteDialect } from './sqlite-dialect.ts'
import type { SqliteSession } from './sqlite-protocol.ts'
import type { Database, Tables } from './tables.ts'

/** Settles within the database's own thread, by the same code that settles on Postgres. */
export class Settler {
  readonly #db: Database
  readonly #settling: Settling

  constructor(session: SqliteSession) {
    this.#db = new Kysely<Tables>({ dialect: new NodeSqliteDialect(session) })
    this.#settling = new Settling(this.#db)
  }

  settle(settlements: readonly SettlementRow[]): Promise<readonly SettlementResult[]> {
    return this.#db.transaction().execute((trx) => this.#settling.settle(trx, settlements))
  }
}
