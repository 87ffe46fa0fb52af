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

/** A Kysely dialect for `node:sqlite` in a worker thread. */
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
    return new NodeSqliteAdapter()
  }

  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own signature
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new NodeSqliteIntrospector(db, this.#thread)
  }
}

/**
 * There is one connection. Kysely lends it to one query or one whole transaction at a time, because
 * `supportsMultipleConnections` is false in its SQLite adapter. Migrations run in a transaction, which is an immediate
 * one, so it also locks out other processes.
 */
class NodeSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** Also leads from a handle, or a transaction of it, to the thread: Kysely asks the dialect for it. */
class NodeSqliteIntrospector extends SqliteIntrospector {
  readonly thread: SqliteClient

  constructor(db: Kysely<unknown>, thread: SqliteClient) {
    super(db)
    this.thread = thread
  }
}

/** Returns the client of a database's thread; undefined if the database has none. */
export function threadOf(db: Database): SqliteClient | undefined {
  const { introspection } = db
  return introspection instanceof NodeSqliteIntrospector ? introspection.thread : undefined
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

  /**
   * Begins an immediate transaction: one that reads first and writes later would otherwise fail after a write of
   * another process.
   */
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
