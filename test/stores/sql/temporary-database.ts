import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { fastFolder } from '../../support/fast-folder.ts'

/** For tests that are not about clocks: on a busy machine a database may take its time. */
export const PATIENT = { connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 } as const

/** A folder of its own for a database, and the way to be rid of it. */
export async function temporaryFolder(): Promise<{ url: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(fastFolder(), 'gateway-'))
  return {
    url: `sqlite:${join(folder, 'data', 'gateway.db')}`,
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The URL of a database that goes with the test. */
export async function databaseUrl(t: TestContext): Promise<string> {
  const { url, remove } = await temporaryFolder()
  t.after(remove)
  return url
}

/** Opens a database and closes it after the test. */
export async function open(t: TestContext, url: string): Promise<Database> {
  const db = await openDatabase(url, PATIENT)
  t.after(() => db.destroy())
  return db
}
