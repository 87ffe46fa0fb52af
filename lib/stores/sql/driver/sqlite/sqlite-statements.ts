import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { SqliteAnswer, SqliteValue } from './sqlite-protocol.ts'

interface Prepared {
  readonly statement: StatementSync
  readonly answersRows: boolean
  /** Columns declared `integer`, whose values fit a number. */
  readonly numbers: readonly string[]
}

/**
 * Prepares and runs statements, keeping the most recently used ones prepared.
 *
 * Types follow the declaration of a column, as they would with Postgres: `integer` reads as a number; every other
 * integer, counts and sums included, as a bigint, so that no amount ever passes through a float.
 */
export class SqliteStatements {
  readonly #db: DatabaseSync
  readonly #most: number
  readonly #prepared = new Map<string, Prepared>()

  constructor(db: DatabaseSync, most: number) {
    this.#db = db
    this.#most = most
  }

  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    const { statement, answersRows, numbers } = this.#prepare(sql)
    const bound = parameters.map(toBound)
    if (!answersRows) return { rows: [], changes: BigInt(statement.run(...bound).changes) }
    const rows = statement.all(...bound) as Record<string, SqliteValue>[]
    if (numbers.length > 0) for (const row of rows) narrow(row, numbers)
    return { rows, changes: undefined }
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql)
    if (prepared) {
      this.#prepared.delete(sql)
    } else {
      prepared = prepare(this.#db, sql)
      if (this.#prepared.size >= this.#most)
        this.#prepared.delete(this.#prepared.keys().next().value as string)
    }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

function prepare(db: DatabaseSync, sql: string): Prepared {
  const statement = db.prepare(sql)
  statement.setReadBigInts(true)
  const columns = statement.columns()
  const numbers = columns.filter(({ type }) => type?.toLowerCase() === 'integer').map(({ name }) => name)
  return { statement, answersRows: columns.length > 0, numbers }
}

/** node:sqlite binds every number as a float, which a column without a numeric type would keep as one. */
function toBound(value: unknown): SQLInputValue {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : (value as SQLInputValue)
}

function narrow(row: Record<string, SqliteValue>, names: readonly string[]): void {
  for (const name of names) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = Number(value)
  }
}
