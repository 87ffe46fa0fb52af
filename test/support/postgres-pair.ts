import { type PostgresServer, startPostgres } from './postgres-server.ts'
import { untilAsync } from './until.ts'

/** A database on a primary, and a standby that has all that the primary has confirmed. */
export interface PostgresPair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** URL of the database that names both servers. */
  readonly url: string
  readonly databaseName: string
  /** Runs one statement in the database, on the server that is the primary now; answers its rows. */
  query(statement: string): Promise<Record<string, unknown>[]>
  /** Kills the primary. */
  killPrimary(): Promise<void>
  /** Makes the standby the primary. */
  promote(): Promise<void>
  close(): Promise<void>
}

/** Starts both, with an empty database. */
export async function startPostgresPair(): Promise<PostgresPair> {
  const settings = { max_connections: 600 }
  const primary = await startPostgres({ settings })
  const made = new URL(await primary.createDatabase())
  const standby = await startPostgres({ settings, standbyOf: primary.port })
  await primary.query(`alter system set synchronous_standby_names = '*'`)
  await primary.query('select pg_reload_conf()')
  await untilAsync(async () => {
    const [row] = await primary.query('select sync_state from pg_stat_replication')
    return row?.sync_state === 'sync'
  }, 'the standby')
  let current = primary
  const urlOf = (hosts: string) => `postgres://postgres@${hosts}${made.pathname}`
  return {
    primary,
    standby,
    url: urlOf(`127.0.0.1:${primary.port},127.0.0.1:${standby.port}`),
    databaseName: made.pathname.slice(1),
    query: (statement) => current.query(statement, urlOf(`127.0.0.1:${current.port}`)),
    killPrimary: () => primary.kill(),
    async promote() {
      await standby.query('select pg_promote()')
      current = standby
    },
    async close() {
      await Promise.all([primary.close(), standby.close()])
    },
  }
}
