import type { PostgresPoolClient, PostgresQueryResult } from 'kysely'
import type { PoolClient, QueryConfig } from 'pg'
import { timeLimit } from '../../../../core/timing/index.ts'
import type { RowWrite } from '../row-statement.ts'
import { retryConflicts } from '../transact.ts'
import { DatabaseTimeout } from './database-timeout.ts'
import { PostgresBatch } from './postgres-batch.ts'
import type { PostgresStatements } from './postgres-statements.ts'
import { encodeParameter } from './postgres-values.ts'

/** The columns of a prepared statement have changed: "cached plan must not change result type", and others. */
const NOT_SUPPORTED = '0A000'
/** The server has become a standby. */
export const READ_ONLY = '25006'
/** The server is going down, or is not up yet. */
const SHUTTING_DOWN = ['57P01', '57P02', '57P03']

/** The statements of Kysely's transactions. */
const TRANSACTION_BEGINS = /^(?:begin|start transaction)\b/i
const TRANSACTION_ENDS = /^(?:commit|rollback)$/i

/**
 * One connection, as Kysely uses it. A statement that is not answered in time ends the connection, because its state is
 * unknown; any further statement then fails at once, a rollback too.
 */
export class PostgresClient implements PostgresPoolClient {
  readonly #client: PoolClient
  readonly #timeoutMs: number
  readonly #statements: PostgresStatements
  /** The statements of batches that this connection has parsed. */
  readonly #parsed = new Set<string>()
  readonly #onReadOnly: (openedAt: number) => void
  /** On the monotonic clock. */
  readonly openedAt = performance.now()
  #isInTransaction = false
  #lost: DatabaseTimeout | undefined
  #outdated = false

  /** @param onReadOnly runs when the server says that it takes no writes. */
  constructor(
    client: PoolClient,
    timeoutMs: number,
    statements: PostgresStatements,
    onReadOnly: (openedAt: number) => void = () => {},
  ) {
    this.#client = client
    this.#onReadOnly = onReadOnly
    this.#timeoutMs = timeoutMs
    this.#statements = statements
  }

  query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>
  query(cursor: object): never
  query(sql: string | object, parameters: readonly unknown[] = []): Promise<PostgresQueryResult<never>> {
    if (typeof sql !== 'string') {
      throw new Error('Postgres queries are not streamed: page through them with a limit')
    }
    const ask = () => this.#inTime(() => this.#client.query(this.#worded(sql, parameters)))
    if (TRANSACTION_BEGINS.test(sql)) this.#isInTransaction = true
    else if (TRANSACTION_ENDS.test(sql)) this.#isInTransaction = false
    // A statement of a transaction is repeated with all others of it.
    else if (!this.#isInTransaction) return retryConflicts(ask) as never
    return ask() as never
  }

  /**
   * Writes rows in a transaction of their own: all of them or, if it rejects, none, unless only the answer was lost.
   *
   * They are sent together, in one round trip. None begins before the last has arrived completely, so that a process
   * that pauses meanwhile holds no lock.
   */
  transact(writes: readonly RowWrite[]): Promise<void> {
    return this.#inTime(() => PostgresBatch.run(this.#client, writes, this.#parsed))
  }

  release(destroy = false): void {
    this.#client.release(destroy || this.#outdated || this.#lost !== undefined)
  }

  async #inTime<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#lost) throw this.#lost
    const giveUp = (): void => {
      this.#lost = new DatabaseTimeout(`Postgres did not answer within ${this.#timeoutMs} ms`)
      this.#client.connection.stream.destroy()
    }
    const cancel = timeLimit(this.#timeoutMs, giveUp, true)
    try {
      return await ask()
    } catch (error) {
      const { code } = error as { code?: string }
      if (code === NOT_SUPPORTED || code === READ_ONLY || SHUTTING_DOWN.includes(`${code}`))
        this.#outdated = true
      if (code === READ_ONLY) this.#onReadOnly(this.openedAt)
      throw this.#lost ?? error
    } finally {
      cancel()
    }
  }

  #worded(text: string, parameters: readonly unknown[]): QueryConfig<unknown[]> {
    const name = parameters.length > 0 ? this.#statements.nameOf(text) : undefined
    return { text, values: parameters.map(encodeParameter), ...(name !== undefined && { name }) }
  }
}
