import type { TestContext } from 'node:test'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { type FarServer, farServer } from '../../support/far-server.ts'
import { startPostgres } from '../../support/postgres-server.ts'

/** A database of a Postgres that is reached from far away. */
export interface FarDatabase {
  /** Its URL from near by, for whoever looks at its rows. */
  readonly near: string
  readonly far: string
  readonly server: FarServer
}

/** Makes a database that has its tables; all that was started ends with the test. */
export async function farDatabase(t: TestContext, roundTripMs: number): Promise<FarDatabase> {
  const postgres = await startPostgres()
  t.after(() => postgres.close())
  const near = await postgres.createDatabase()
  await (await openDatabase(near)).destroy()
  const server = await farServer(postgres.port, roundTripMs)
  t.after(() => server.close())
  const far = new URL(near)
  far.port = `${server.port}`
  return { near, far: far.href, server }
}
