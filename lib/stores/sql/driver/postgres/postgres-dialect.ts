import { type Kysely, PostgresAdapter, PostgresDialect, PostgresIntrospector } from 'kysely'
import type { PostgresConnections } from './postgres-pool.ts'

/** Kysely's own dialect, with access to its connections. */
export class PooledPostgresDialect extends PostgresDialect {
  readonly #connections: PostgresConnections

  constructor(connections: PostgresConnections) {
    super({ pool: connections })
    this.#connections = connections
  }

  override createAdapter(): PostgresAdapter {
    return new PooledPostgresAdapter()
  }

  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own signature
  override createIntrospector(db: Kysely<any>): PostgresIntrospector {
    return new PooledPostgresIntrospector(db, this.#connections)
  }
}

class PooledPostgresAdapter extends PostgresAdapter {
  /** Kysely's own lock is an advisory one. Here each migration locks a row. */
  override async acquireMigrationLock(): Promise<void> {}

  override async releaseMigrationLock(): Promise<void> {}
}

/** Also leads from a handle, or a transaction of it, to the connections: Kysely asks the dialect for it. */
class PooledPostgresIntrospector extends PostgresIntrospector {
  readonly connections: PostgresConnections

  constructor(db: Kysely<unknown>, connections: PostgresConnections) {
    super(db)
    this.connections = connections
  }
}

/**
 * Returns the connections of a Postgres database.
 *
 * @throws TypeError for a database that `openDatabase` has not opened.
 */
export function connectionsOf<T>(db: Kysely<T>): PostgresConnections {
  const { introspection } = db
  if (introspection instanceof PooledPostgresIntrospector) return introspection.connections
  throw new TypeError('the database must be one that openDatabase has opened')
}
