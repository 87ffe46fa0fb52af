import type { Connection, PoolClient, Submittable } from 'pg'
import type { RowWrite } from '../row-statement.ts'
import { arraysOf } from './postgres-arrays.ts'

/** Beyond so many characters Postgres would put a statement's rows on the disk before it writes them. */
const MOST_CHARACTERS = 2_000_000

/** A statement that each connection parses once, and after a while plans once; and what it is given, in binary. */
interface Bound {
  /** Of this statement only. */
  readonly name: string
  readonly text: string
  readonly values: Buffer[]
}

/**
 * Rows that Postgres is handed with one end for all statements that write them, which makes them one transaction: the
 * first that fails undoes them all. What they answer is not read; each makes sure by itself that it has written all.
 *
 * All are bound before the first is done. Each sees what has been committed before it begins, nevertheless, where it
 * writes; one that only reads would see what had been committed when it was bound.
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

  /** @param parsed names of the statements that the connection knows, which is kept up to date. */
  static run(client: PoolClient, writes: readonly RowWrite[], parsed: Set<string>): Promise<void> {
    return new Promise((resolve, reject) => {
      client.query(new PostgresBatch(writes.flatMap(boundOf), parsed, resolve, reject))
    })
  }

  /** Called by `pg`, as are those that follow. */
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
    // Which of them it has got to know is unclear.
    for (const { name } of this.#statements) this.#parsed.delete(name)
    this.#reject(error)
  }

  handleDataRow(): void {}

  handleCommandComplete(): void {}

  #parse(connection: Connection, { name, text }: Bound): void {
    if (this.#parsed.has(name)) return
    this.#parsed.add(name)
    // It may know it nevertheless, from a batch that failed; to close one that it does not know is no mistake.
    connection.close({ type: 'S', name }, true)
    connection.parse({ name, text, types: [] }, true)
  }
}

/** A statement for so many rows at a time as Postgres keeps in memory. */
function boundOf({ statement: { name, columns, postgresOrFail: text }, rows }: RowWrite): Bound[] {
  const bound: Bound[] = []
  let start = 0
  let characters = 0
  for (const [i, row] of rows.entries()) {
    let length = 0
    for (const cell of row) if (typeof cell === 'string') length += cell.length
    if (characters + length > MOST_CHARACTERS && i > start) {
      bound.push({ name, text, values: arraysOf(columns, rows.slice(start, i)) })
      start = i
      characters = 0
    }
    characters += length
  }
  bound.push({ name, text, values: arraysOf(columns, start === 0 ? rows : rows.slice(start)) })
  return bound
}
