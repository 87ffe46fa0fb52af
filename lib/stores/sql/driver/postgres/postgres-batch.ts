import type { Connection, PoolClient, Submittable } from 'pg'
import type { RowWrite } from '../row-statement.ts'
import { arraysOf } from './postgres-values.ts'

/** If a statement's rows had more characters than this, Postgres would write them to a temporary file first. */
const MAX_CHARACTERS = 2_000_000

/** A statement that each connection parses once and later also plans once, and its parameters in binary. */
interface Bound {
  /** The name of the prepared statement. */
  readonly name: string
  readonly text: string
  readonly values: Buffer[]
}

/**
 * Statements that write rows, sent to Postgres with a single end, which makes them one transaction: the first failure
 * undoes them all. Their results are not read; each statement checks itself that it has written all its rows.
 *
 * All are bound before the first is executed. Nevertheless each sees what was committed before it begins, because it
 * writes; a statement that only reads would see what was committed when it was bound.
 */
export class PostgresBatch implements Submittable {
  readonly #statements: readonly Bound[]
  readonly #parsed: Set<string>
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void

  private constructor(
    statements: readonly Bound[],
    parsed: Set<string>,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    this.#statements = statements
    this.#parsed = parsed
    this.#resolve = resolve
    this.#reject = reject
  }

  /** @param parsed the names of the statements that the connection knows; it is updated. */
  static run(client: PoolClient, writes: readonly RowWrite[], parsed: Set<string>): Promise<void> {
    return new Promise((resolve, reject) => {
      client.query(new PostgresBatch(writes.flatMap(boundOf), parsed, resolve, reject))
    })
  }

  /** Called by `pg`, as are the following methods. */
  submit(connection: Connection): void {
    connection.stream.cork()
    try {
      for (const [i, statement] of this.#statements.entries()) {
        this.#parse(connection, statement)
        const { name, values } = statement
        connection.bind({ portal: `portal_${i}`, statement: name, values }, true)
      }
      for (const i of this.#statements.keys()) connection.execute({ portal: `portal_${i}` }, true)
      connection.sync()
    } finally {
      connection.stream.uncork()
    }
  }

  handleReadyForQuery(): void {
    this.#resolve()
  }

  handleError(error: unknown): void {
    // It is unknown which of them the connection has parsed.
    for (const { name } of this.#statements) this.#parsed.delete(name)
    this.#reject(error)
  }

  handleDataRow(): void {}

  handleCommandComplete(): void {}

  #parse(connection: Connection, { name, text }: Bound): void {
    if (this.#parsed.has(name)) return
    this.#parsed.add(name)
    // The connection may know it from a batch that failed. Closing a statement that it does not know is no error.
    connection.close({ type: 'S', name }, true)
    connection.parse({ name, text, types: [] }, true)
  }
}

/** Binds a statement to as many rows as Postgres keeps in memory. */
function boundOf({ statement: { name, columns, postgresOrFail: text }, rows }: RowWrite): Bound[] {
  const bound: Bound[] = []
  let start = 0
  let characters = 0
  for (const [i, row] of rows.entries()) {
    let length = 0
    for (const cell of row) if (typeof cell === 'string') length += cell.length
    if (characters + length > MAX_CHARACTERS && i > start) {
      bound.push({ name, text, values: arraysOf(columns, rows.slice(start, i)) })
      start = i
      characters = 0
    }
    characters += length
  }
  bound.push({ name, text, values: arraysOf(columns, start === 0 ? rows : rows.slice(start)) })
  return bound
}
