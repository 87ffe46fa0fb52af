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
import { SqliteClient } from './sqlite-client.ts'
import type { SqliteSession } from './sqlite-protocol.ts'
import type { Database } from './tables.ts'

/** Kysely on `node:sqlite`: in a worker thread, or within that thread. */
export class NodeSqliteDialect implements Dialect {
  readonly #session: SqliteSession

  constructor(session: SqliteSession) {
    this.#session = session
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#session)
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler()
  }

  createAdapter(): DialectAdapter {
    return new NodeSqliteAdapter(this.#session)
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
  readonly session: SqliteSession

  constructor(session: SqliteSession) {
    super()
    this.session = session
  }

  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** The thread in which a database is; undefined where it is in none. */
export function threadOf(db: Database): SqliteClient | undefined {
  const { adapter } = db.getExecutor()
  if (!(adapter instanceof NodeSqliteAdapter)) return undefined
  return adapter.session instanceof SqliteClient ? adapter.session : undefined
}

class NodeSqliteDriver implements Driver {
  readonly #session: SqliteSession
  readonly #connection: DatabaseConnection

  constructor(session: SqliteSession) {
    this.#session = session
    this.#connection = new NodeSqliteConnection(session)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }

  /** Immediate: a transaction that reads first and writes later would otherwise fail where another process wrote. */
  async beginTransaction(_connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    this.#session.begin(settings.accessMode === 'read only' ? 'begin' : 'begin immediate')
  }

  async commitTransaction(): Promise<void> {
    await this.#session.commit()
  }

  async rollbackTransaction(): Promise<void> {
    await this.#session.rollback()
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#session.close()
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #session: SqliteSession

  constructor(session: SqliteSession) {
    this.#session = session
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes } = await this.#session.query(sql, parameters)
    return { rows: rows as R[], ...(changes !== undefined && { numAffectedRows: changes }) }
  }

  // biome-ignore lint/correctness/useYield: refuses
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('SQLite queries are not streamed: page through them with a limit')
  }
}
