import type { TestContext } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type PostgresDatabases,
  postgresDatabases,
  SHARED_POSTGRES,
} from '../../support/postgres-databases.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { databaseUrl } from './temporary-database.ts'

let databases: Promise<PostgresDatabases> | undefined
const cleanUp = cleaningUp()

/** The Postgres of a run, or else one of this file, for tests that leave it as it is. */
export function sharedPostgres(): Promise<PostgresDatabases> {
  databases ??= open()
  return databases
}

async function open(): Promise<PostgresDatabases> {
  const port = process.env[SHARED_POSTGRES]
  if (port !== undefined) {
    const shared = postgresDatabases(Number(port))
    cleanUp.after(() => shared.dropDatabases())
    return shared
  }
  const own = await startPostgres()
  cleanUp.after(() => own.close())
  return own
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
