import { Client } from 'pg'
import { openDatabase } from '../../lib/stores/sql/index.ts'

/** In the environment: the port of the Postgres that all files of a run share. */
export const SHARED_POSTGRES = 'TEST_SHARED_POSTGRES'

/** The database of which those are copies that have the tables and no rows: a copy takes less than half of what migrating takes. */
const MIGRATED = 'migrated'

/** The databases of a Postgres that listens on loopback. */
export interface PostgresDatabases {
  /** Of an empty database that everybody who asks for it shares. */
  readonly url: string
  /** Makes an empty database and answers its URL. */
  createDatabase(): Promise<string>
  /** Makes a database that is migrated, once for all who ask for a copy. */
  prepareCopies(): Promise<void>
  /** Makes a database with the tables and no rows, and answers its URL; {@link prepareCopies} comes first. */
  createMigrated(): Promise<string>
  /** Removes what a process has made there, whoever is connected. */
  dropDatabasesOf(pid: number): Promise<void>
  /** Runs one statement as the superuser, in the database of a URL or in the shared one; answers its rows. */
  query(statement: string, url?: string): Promise<Record<string, unknown>[]>
}

export function postgresDatabases(port: number): PostgresDatabases {
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const connected = async <T>(url: string, use: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    try {
      return await use(client)
    } finally {
      await client.end()
    }
  }
  const query = (statement: string, url = urlOf('postgres')) =>
    connected(url, async (client) => (await client.query(statement)).rows as Record<string, unknown>[])
  let made = 0
  let copying: Promise<string> | undefined
  /** Before version 15 there is no other way than by files. */
  const byFiles = async () => {
    const [row] = await query('show server_version_num')
    return Number(row?.server_version_num) < 150_000 ? '' : 'strategy file_copy'
  }
  const create = async (template: string) => {
    copying ??= byFiles()
    // The server may be shared with other test files.
    const name = `test_${process.pid}_${made++}`
    await query(`create database ${name} template ${template} ${await copying}`)
    return urlOf(name)
  }
  return {
    url: urlOf('postgres'),
    query,
    createDatabase: () => create('template1'),
    async prepareCopies() {
      await query(`create database ${MIGRATED}`)
      await (await openDatabase(urlOf(MIGRATED))).destroy()
    },
    createMigrated: () => create(MIGRATED),
    // A connection takes longer than what is done here.
    dropDatabasesOf: (pid) =>
      connected(urlOf('postgres'), async (client) => {
        const { rows } = await client.query(
          String.raw`select datname from pg_database where datname like 'test\_${pid}\_%'`,
        )
        for (const { datname } of rows) await client.query(`drop database ${datname} with (force)`)
      }),
  }
}
