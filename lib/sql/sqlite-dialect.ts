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
import type { SqliteClient } from './sqlite-client.ts'

/** Kysely on `node:sqlite` in a worker thread. */
export class NodeSqliteDialect implements Dialect {
  readonly #client: SqliteClient

  constructor(client: SqliteClient) {
    this.#client = client
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#client)
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler()
  }

  createAdapter(): DialectAdapter {
    return new NodeSqliteAdapter()
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
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

class NodeSqliteDriver implements Driver {
  readonly #client: SqliteClient
  readonly #connection: DatabaseConnection

  constructor(client: SqliteClient) {
    this.#client = client
    this.#connection = new NodeSqliteConnection(client)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }

  /** Immediate: a transaction that reads first and writes later would otherwise fail where another process wrote. */
  async beginTransaction(_connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    this.#client.begin(settings.accessMode === 'read only' ? 'begin' : 'begin immediate')
  }

  async commitTransaction(): Promise<void> {
    await this.#client.commit()
  }

  async rollbackTransaction(): Promise<void> {
    await this.#client.rollback()
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#client.close()
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #client: SqliteClient

  constructor(client: SqliteClient) {
    this.#client = client
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes } = await this.#client.query(sql, parameters)
    return { rows: rows as R[], ...(changes !== undefined && { numAffectedRows: changes }) }
  }

  // biome-ignore lint/correctness/useYield: refuses
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('SQLite queries are not streamed: page through them with a limit')
  }
}
