import { after, type TestContext } from 'node:test'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { databaseUrl } from './temporary-database.ts'

let server: Promise<PostgresServer> | undefined
after(async () => {
  await (await server)?.close()
})

/** The one Postgres of a test file, for tests that leave it as it is. */
export function sharedPostgres(): Promise<PostgresServer> {
  server ??= startPostgres()
  return server
}

/** The URL of an empty database in it. */
export async function postgresUrl(): Promise<string> {
  return (await sharedPostgres()).createDatabase()
}

/** What a test of SQL code runs on: where to get an empty database, and why it cannot be had. */
export interface Backend {
  readonly name: string
  readonly url: (t: TestContext) => Promise<string>
  readonly skip: string | false
}

export const BACKENDS: readonly Backend[] = [
  { name: 'SQLite', url: databaseUrl, skip: false },
  { name: 'Postgres', url: postgresUrl, skip: WITHOUT_POSTGRES },
]
