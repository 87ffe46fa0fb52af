import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { type CleanUp, cleaningUp } from '../../../support/clean-up.ts'
import {
  type PostgresDatabases,
  postgresDatabases,
  SHARED_POSTGRES,
} from '../../../support/postgres-databases.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { databaseUrl, emptyDatabaseUrl, PATIENT } from './temporary-database.ts'

let databases: Promise<PostgresDatabases> | undefined
const cleanUp = cleaningUp()

/** The Postgres of a run, or else one of this file, for tests that leave it as it is. */
export function sharedPostgres(): Promise<PostgresDatabases> {
  databases ??= open()
  return databases
}

async function open(): Promise<PostgresDatabases> {
  const port = process.env[SHARED_POSTGRES]
  // Databases that are made there are removed with the server.
  if (port !== undefined) return postgresDatabases(Number(port))
  const own = await startPostgres()
  cleanUp.after(() => own.close())
  await own.prepareCopies()
  return own
}

/** The URL of a database in it that has the tables and no rows. */
export async function postgresUrl(): Promise<string> {
  return (await sharedPostgres()).createMigrated()
}

/** The URL of a database in it without a table. */
export async function emptyPostgresUrl(): Promise<string> {
  return (await sharedPostgres()).createDatabase()
}

/** Opens a database in it whose tables are divided by time. */
export async function openPartitioned(
  t: CleanUp,
  url?: string,
  options: OpenDatabaseOptions = {},
): Promise<Database> {
  const settings = { ...PATIENT, ...options, partitions: true }
  const db = await openDatabase(url ?? (await emptyPostgresUrl()), settings)
  t.after(() => db.destroy())
  return db
}

/** The databases that a test of SQL code runs on: where to get one, or why there is none. */
export interface Backend {
  readonly name: string
  /** Of one without rows. */
  readonly url: (t: CleanUp) => Promise<string>
  /** Of one without tables. */
  readonly emptyUrl: (t: CleanUp) => Promise<string>
  readonly skip: string | false
}

export const BACKENDS: readonly Backend[] = [
  { name: 'SQLite', url: databaseUrl, emptyUrl: emptyDatabaseUrl, skip: false },
  { name: 'Postgres', url: postgresUrl, emptyUrl: emptyPostgresUrl, skip: WITHOUT_POSTGRES },
]
