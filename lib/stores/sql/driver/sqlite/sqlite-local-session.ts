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

  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    return this.#statements.run(sql, parameters)
  }

  begin(how: 'begin' | 'begin immediate'): void {
    this.#db.exec(how)
  }

  /** Writes rows in a transaction of its own; undoes it, and answers false, where one was not written. */
  write(writes: readonly SqliteWrite[]): boolean {
    this.#statements.execute('begin immediate')
    try {
      for (const { sql, rows, loose } of writes) {
        if (this.#statements.runEach(sql, rows) === rows.length || loose) continue
        this.undo()
        return false
      }
      this.#statements.execute('commit')
      return true
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
