import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Database, openDatabase } from '../../../../lib/stores/sql/index.ts'
import type { CleanUp } from '../../../support/clean-up.ts'
import { fastFolder } from '../../../support/fast-folder.ts'

/**
 * For tests that are not about clocks: on a busy machine a database may take its time. Half of a pool's connections are
 * opened with it, each of which costs Postgres a process.
 */
export const PATIENT = { connectTimeoutMs: 30_000, statementTimeoutMs: 30_000, poolSize: 4 } as const

/** A place for a database, and the way to be rid of it. */
interface Place {
  readonly url: string
  remove(): Promise<void>
}

/** The file of a database that has the tables and no rows: a copy takes half as long as the migrations. */
let migrated: Promise<Buffer> | undefined

/** A folder of its own for a database, which is not there yet. */
export async function temporaryFolder(): Promise<Place> {
  const folder = await mkdtemp(join(fastFolder(), 'gateway-'))
  return {
    url: `sqlite:${join(folder, 'data', 'gateway.db')}`,
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** A folder of its own, and in it a database that has the tables and no rows. */
export async function temporaryDatabase(): Promise<Place> {
  migrated ??= migratedFile()
  const content = await migrated
  const place = await temporaryFolder()
  const file = fileOf(place.url)
  await mkdir(dirname(file), { mode: 0o700 })
  await writeFile(file, content)
  return place
}

async function migratedFile(): Promise<Buffer> {
  const { url, remove } = await temporaryFolder()
  await (await openDatabase(url, PATIENT)).destroy()
  const content = await readFile(fileOf(url))
  await remove()
  return content
}

const fileOf = (url: string): string => url.slice('sqlite:'.length)

/** The URL of a database that has the tables and no rows, and goes with the test. */
export async function databaseUrl(t: CleanUp): Promise<string> {
  const { url, remove } = await temporaryDatabase()
  t.after(remove)
  return url
}

/** The URL of a database that is made when it is opened, and goes with the test. */
export async function emptyDatabaseUrl(t: CleanUp): Promise<string> {
  const { url, remove } = await temporaryFolder()
  t.after(remove)
  return url
}

/** Opens a database and closes it after the test. */
export async function open(t: CleanUp, url: string): Promise<Database> {
  const db = await openDatabase(url, PATIENT)
  t.after(() => db.destroy())
  return db
}
