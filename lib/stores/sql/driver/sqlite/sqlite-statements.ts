import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Cell } from '../columns.ts'
import type { SqliteAnswer, SqliteValue } from './sqlite-protocol.ts'

interface Prepared {
  readonly statement: StatementSync
  readonly answersRows: boolean
  /** Columns declared `integer`, whose values fit a number. */
  readonly numbers: readonly string[]
}

/**
 * Prepares and runs statements. The most recently used ones stay prepared.
 *
 * Types follow the declaration of a column, as with Postgres: `integer` is read as a number; every other integer,
 * counts and sums included, as a bigint, so that no amount is ever converted to a float.
 */
export class SqliteStatements {
  readonly #db: DatabaseSync
  readonly #most: number
  readonly #prepared = new Map<string, Prepared>()

  constructor(db: DatabaseSync, most: number) {
    this.#db = db
    this.#most = most
  }

  /** @param parameters if the only one is a list of rows, the statement runs once for each of them. */
  run(sql: string, parameters: readonly unknown[]): SqliteAnswer {
    const prepared = this.#prepare(sql)
    const [given] = parameters
    const each = Array.isArray(given) ? (given as unknown[][]) : [parameters]
    const bound = each.map((row) => row.map(toBound))
    if (!prepared.answersRows) return { rows: [], changes: BigInt(changesOf(prepared, bound)) }
    const rows: Record<string, SqliteValue>[] = []
    for (const row of bound) {
      const found = prepared.statement.all(...row) as Record<string, SqliteValue>[]
      for (const one of found) rows.push(one)
    }
    if (prepared.numbers.length > 0) for (const row of rows) narrow(row, prepared.numbers)
    return { rows, changes: undefined }
  }

  /**
   * Runs a statement without results once for each row of parameters, whose numbers belong to columns of a numeric
   * type. Returns how many rows it changed.
   */
  runEach(sql: string, rows: readonly (readonly Cell[])[]): number {
    return changesOf(this.#prepare(sql), rows)
  }

  /** Runs a statement without parameters. */
  execute(sql: string): void {
    this.#prepare(sql).statement.run()
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

function changesOf({ statement }: Prepared, rows: readonly (readonly SQLInputValue[])[]): number {
  let changes = 0
  for (const row of rows) changes += Number(statement.run(...row).changes)
  return changes
}

function prepare(db: DatabaseSync, sql: string): Prepared {
  const statement = db.prepare(sql)
  const columns = statement.columns()
  if (columns.length > 0) statement.setReadBigInts(true)
  const numbers = columns.filter(({ type }) => type?.toLowerCase() === 'integer').map(({ name }) => name)
  return { statement, answersRows: columns.length > 0, numbers }
}

/** node:sqlite binds each number as a float, which a column without a numeric type would store as such. */
function toBound(value: unknown): SQLInputValue {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : (value as SQLInputValue)
}

function narrow(row: Record<string, SqliteValue>, names: readonly string[]): void {
  for (const name of names) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = Number(value)
  }
}
