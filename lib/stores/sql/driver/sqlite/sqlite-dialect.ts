import {
  type CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely'
import type { Database } from '../tables.ts'
import type { SqliteClient } from './sqlite-client.ts'

/** Kysely on `node:sqlite`, which is in a worker thread. */
export class NodeSqliteDialect implements Dialect {
  readonly #thread: SqliteClient

  constructor(thread: SqliteClient) {
    this.#thread = thread
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#thread)
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler()
  }

  createAdapter(): DialectAdapter {
    return new NodeSqliteAdapter(this.#thread)
  }

  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own signature
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new SqliteIntrospector(db)
  }
}

/**
 * There is one connection, which Kysely (told so by `supportsMultipleConnections`, false in its SQLite adapter) lends
 * to one query or one whole transaction at a time. Migrations run in a transaction; as it is an immediate one, it is
 * their lock between processes too.
 */
class NodeSqliteAdapter extends SqliteAdapter {
  readonly thread: SqliteClient

  constructor(thread: SqliteClient) {
    super()
    this.thread = thread
  }

  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** The thread in which a database is; undefined where it is in none. */
export function threadOf(db: Database): SqliteClient | undefined {
  const { adapter } = db.getExecutor()
  return adapter instanceof NodeSqliteAdapter ? adapter.thread : undefined
}

class NodeSqliteDriver implements Driver {
  readonly #thread: SqliteClient
  readonly #connection: DatabaseConnection

  constructor(thread: SqliteClient) {
    this.#thread = thread
    this.#connection = new NodeSqliteConnection(thread)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }

  /** Immediate: a transaction that reads first and writes later would otherwise fail where another process wrote. */
  async beginTransaction(_connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    this.#thread.begin(settings.accessMode === 'read only' ? 'begin' : 'begin immediate')
  }

  async commitTransaction(): Promise<void> {
    await this.#thread.commit()
  }

  async rollbackTransaction(): Promise<void> {
    await this.#thread.rollback()
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#thread.close()
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #thread: SqliteClient

  constructor(thread: SqliteClient) {
    this.#thread = thread
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes } = await this.#thread.query(sql, parameters)
    return { rows: rows as R[], ...(changes !== undefined && { numAffectedRows: changes }) }
  }

  // biome-ignore lint/correctness/useYield: refuses
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('SQLite queries are not streamed: page through them with a limit')
  }
}
