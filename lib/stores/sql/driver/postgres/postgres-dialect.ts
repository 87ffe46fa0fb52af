import { type Kysely, PostgresAdapter, PostgresDialect } from 'kysely'
import type { PostgresConnections } from './postgres-pool.ts'

/** Kysely's own dialect, with access to its connections. */
export class PooledPostgresDialect extends PostgresDialect {
  readonly #connections: PostgresConnections

  constructor(connections: PostgresConnections) {
    super({ pool: connections })
    this.#connections = connections
  }

  override createAdapter(): PostgresAdapter {
    return new PooledPostgresAdapter(this.#connections)
  }
}

class PooledPostgresAdapter extends PostgresAdapter {
  readonly connections: PostgresConnections

  constructor(connections: PostgresConnections) {
    super()
    this.connections = connections
  }

  /** Kysely's own lock is an advisory one. Here each migration locks a row. */
  override async acquireMigrationLock(): Promise<void> {}

  override async releaseMigrationLock(): Promise<void> {}
}

/**
 * Returns the connections of a Postgres database.
 *
 * @throws TypeError for a database that `openDatabase` has not opened.
 */
export function connectionsOf<T>(db: Kysely<T>): PostgresConnections {
  const { adapter } = db.getExecutor()
  if (adapter instanceof PooledPostgresAdapter) return adapter.connections
  throw new TypeError('the database must be one that openDatabase has opened')
}
