import { Client } from 'pg'

/** In the environment: the port of the Postgres that all files of a run share. */
export const SHARED_POSTGRES = 'TEST_SHARED_POSTGRES'

/** The databases of a Postgres that listens on loopback. */
export interface PostgresDatabases {
  /** Of an empty database that everybody who asks for it shares. */
  readonly url: string
  /** Makes an empty database and answers its URL. */
  createDatabase(): Promise<string>
  /** Runs one statement as the superuser, in the database of a URL or in the shared one; answers its rows. */
  query(statement: string, url?: string): Promise<Record<string, unknown>[]>
  /** Removes the databases that were made here, whoever is connected. */
  dropDatabases(): Promise<void>
}

export function postgresDatabases(port: number): PostgresDatabases {
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const query = async (statement: string, url = urlOf('postgres')) => {
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(statement)).rows as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }
  const made: string[] = []
  return {
    url: urlOf('postgres'),
    query,
    async createDatabase() {
      // The server may be shared with other test files.
      const name = `test_${process.pid}_${made.length}`
      made.push(name)
      await query(`create database ${name}`)
      return urlOf(name)
    },
    async dropDatabases() {
      // At once: each waits for a checkpoint, which they then share.
      await Promise.all(made.map((name) => query(`drop database if exists ${name} with (force)`)))
    },
  }
}
