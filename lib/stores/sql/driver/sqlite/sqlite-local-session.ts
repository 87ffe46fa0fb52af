import type { DatabaseSync } from 'node:sqlite'
import type { SqliteAnswer, SqliteWrite } from './sqlite-protocol.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/** A database in the calling thread, whose results are returned synchronously. */
export class SqliteLocalSession {
  readonly #db: DatabaseSync
  readonly #statements: SqliteStatements

  /** @param maxStatements most prepared statements to keep. */
  constructor(db: DatabaseSync, maxStatements: number) {
    this.#db = db
    this.#statements = new SqliteStatements(db, maxStatements)
  }

  /** Runs a statement. A statement over rows gets a transaction of its own unless one is open. */
  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    if (this.#db.isTransaction || !Array.isArray(parameters[0])) return this.#statements.run(sql, parameters)
    return this.#transact(() => this.#statements.run(sql, parameters))
  }

  begin(how: 'begin' | 'begin immediate'): void {
    this.#db.exec(how)
  }

  /** Writes rows in a transaction of its own. If one was not written, rolls back and returns false. */
  write(writes: readonly SqliteWrite[]): boolean {
    return this.#transact(() => {
      for (const { sql, rows, loose } of writes) {
        if (this.#statements.runEach(sql, rows) !== rows.length && !loose) return false
      }
      return true
    })
  }

  /** Runs `work` in a transaction, which is rolled back if `work` throws or returns false. */
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

  /** Rolls back. Some errors, such as a full disk, roll back by themselves; a second rollback would be an error. */
  undo(): void {
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  shut(): void {
    this.undo()
    this.#db.close()
  }
}
