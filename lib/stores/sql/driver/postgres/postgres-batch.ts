import type { Connection, PoolClient, Submittable } from 'pg'

/** A statement that each connection parses once, and after a while plans once. */
export interface PreparedStatement {
  /** Of this statement only. */
  readonly name: string
  readonly text: string
}

/** A statement and what it is given, in binary. */
export interface BoundStatement {
  readonly statement: PreparedStatement
  readonly values: readonly Buffer[]
}

/**
 * Statements that Postgres is handed with one end for all of them, which makes them one transaction: the first that fails
 * undoes them all. What they answer is not read; each makes sure of what it has done by itself.
 *
 * All are bound before the first is done. Each sees what has been committed before it begins, nevertheless, where it
 * writes; one that only reads would see what had been committed when it was bound.
 */
export class PostgresBatch implements Submittable {
  readonly #statements: readonly BoundStatement[]
  readonly #parsed: Set<string>
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void

  private constructor(
    statements: readonly BoundStatement[],
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
  static run(client: PoolClient, statements: readonly BoundStatement[], parsed: Set<string>): Promise<void> {
    return new Promise((resolve, reject) => {
      client.query(new PostgresBatch(statements, parsed, resolve, reject))
    })
  }

  /** Called by `pg`, as are those that follow. */
  submit(connection: Connection): void {
    connection.stream.cork()
    try {
      for (const { statement, values } of this.#statements) {
        const { name } = statement
        this.#parse(connection, statement)
        connection.bind({ portal: name, statement: name, values: values as Buffer[] }, true)
      }
      for (const { statement } of this.#statements) connection.execute({ portal: statement.name }, true)
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
    for (const { statement } of this.#statements) this.#parsed.delete(statement.name)
    this.#reject(error)
  }

  handleDataRow(): void {}

  handleCommandComplete(): void {}

  #parse(connection: Connection, { name, text }: PreparedStatement): void {
    if (this.#parsed.has(name)) return
    this.#parsed.add(name)
    // It may know it nevertheless, from a batch that failed; to close one that it does not know is no mistake.
    connection.close({ type: 'S', name }, true)
    connection.parse({ name, text, types: [] }, true)
  }
}
