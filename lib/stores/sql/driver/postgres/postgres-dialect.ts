import { type Kysely, type MigrationLockOptions, PostgresAdapter, PostgresDialect } from 'kysely'
import type { Database } from '../tables.ts'
import { limitTableLocks } from './lock-timeout.ts'
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

  override async acquireMigrationLock(db: Kysely<unknown>, options: MigrationLockOptions): Promise<void> {
    await super.acquireMigrationLock(db, options)
    await limitTableLocks(db)
  }
}

/**
 * Returns the connections of a Postgres database.
 *
 * @throws TypeError for a database that `openDatabase` has not opened.
 */
export function connectionsOf(db: Database): PostgresConnections {
  const { adapter } = db.getExecutor()
  if (adapter instanceof PooledPostgresAdapter) return adapter.connections
  throw new TypeError('the database must be one that openDatabase has opened')
}
