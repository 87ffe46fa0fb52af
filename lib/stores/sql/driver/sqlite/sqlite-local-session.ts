import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettlementResult } from '../../../../ledger/index.ts'
import type { SettlementCell } from '../../ledger/settlement-cells.ts'
import { SqliteSettling } from '../../ledger/sqlite-settling.ts'
import type { SqliteAnswer } from './sqlite-protocol.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/** A database in the thread that asks it: every answer is there at once. */
export class SqliteLocalSession {
  readonly #db: DatabaseSync
  readonly #statements: SqliteStatements
  #batches: SettlementBatches | undefined

  /** @param maxStatements most prepared statements kept. */
  constructor(db: DatabaseSync, maxStatements: number) {
    this.#db = db
    this.#statements = new SqliteStatements(db, maxStatements)
  }

  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    return this.#statements.run(sql, parameters)
  }

  begin(how: 'begin' | 'begin immediate'): void {
    this.#db.exec(how)
  }

  /** Settles in a transaction of its own. */
  settle(cells: readonly SettlementCell[]): SettlementResult[] {
    // Not before: the tables may not be there when the database is opened.
    this.#batches ??= new SettlementBatches(this.#db)
    try {
      return this.#batches.settle(cells)
    } catch (error) {
      this.undo()
      throw error
    }
  }

  /** A full disk, among others, rolls back by itself; a second rollback would be an error. */
  undo(): void {
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  shut(): void {
    this.undo()
    this.#db.close()
  }
}

/** What settling keeps prepared. */
class SettlementBatches {
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #settling: SqliteSettling

  constructor(db: DatabaseSync) {
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
    this.#settling = new SqliteSettling(db)
  }

  settle(cells: readonly SettlementCell[]): SettlementResult[] {
    this.#begin.run()
    const results = this.#settling.settle(cells)
    this.#commit.run()
    return results
  }
}
