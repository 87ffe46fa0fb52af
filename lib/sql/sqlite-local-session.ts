import type { DatabaseSync } from 'node:sqlite'
import type { SqliteAnswer, SqliteSession } from './sqlite-protocol.ts'
import type { SqliteStatements } from './sqlite-statements.ts'

/** A database in the thread that asks it: every answer is there at once. */
export class SqliteLocalSession implements SqliteSession {
  readonly #db: DatabaseSync
  readonly #statements: SqliteStatements

  constructor(db: DatabaseSync, statements: SqliteStatements) {
    this.#db = db
    this.#statements = statements
  }

  async query(sql: string, parameters: readonly unknown[]): Promise<SqliteAnswer> {
    return this.run(sql, parameters)
  }

  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    return this.#statements.run(sql, parameters)
  }

  begin(how: 'begin' | 'begin immediate'): void {
    this.#db.exec(how)
  }

  async commit(): Promise<void> {
    this.#db.exec('commit')
  }

  async rollback(): Promise<void> {
    this.undo()
  }

  /** A full disk, among others, rolls back by itself; a second rollback would be an error. */
  undo(): void {
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  async close(): Promise<void> {
    this.shut()
  }

  shut(): void {
    this.undo()
    this.#db.close()
  }
}
