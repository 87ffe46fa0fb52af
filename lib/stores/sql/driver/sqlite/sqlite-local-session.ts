import type { DatabaseSync } from 'node:sqlite'
import type { SqliteAnswer, SqliteWrite } from './sqlite-protocol.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/** A database in the thread that asks it: every answer is there at once. */
export class SqliteLocalSession {
  readonly #db: DatabaseSync
  readonly #statements: SqliteStatements

  /** @param maxStatements most prepared statements kept. */
  constructor(db: DatabaseSync, maxStatements: number) {
    this.#db = db
    this.#statements = new SqliteStatements(db, maxStatements)
  }

  /** Runs a statement; one over rows outside of a transaction has one of its own. */
  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    if (this.#db.isTransaction || !Array.isArray(parameters[0])) return this.#statements.run(sql, parameters)
    return this.#transact(() => this.#statements.run(sql, parameters))
  }

  begin(how: 'begin' | 'begin immediate'): void {
    this.#db.exec(how)
  }

  /** Writes rows in a transaction of its own; undoes it, and answers false, where one was not written. */
  write(writes: readonly SqliteWrite[]): boolean {
    return this.#transact(() => {
      for (const { sql, rows, loose } of writes) {
        if (this.#statements.runEach(sql, rows) !== rows.length && !loose) return false
      }
      return true
    })
  }

  /** Does something in a transaction, which is undone where that throws or answers false. */
  #transact<T>(work: () => T): T {
    this.#statements.execute('begin immediate')
    try {
      const done = work()
      if (done === false) this.undo()
      else this.#statements.execute('commit')
      return done
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
