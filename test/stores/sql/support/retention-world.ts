import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Database, SqlRetention, type SqlRetentionOptions } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { openPartitioned } from './postgres-database.ts'
import { open } from './temporary-database.ts'

export const DAY_MS = 86_400_000
/** Long behind what an empty database has as its first partition. */
export const NOW = Date.now() + 400 * DAY_MS
export const MONTH_MS = 31 * DAY_MS
export function retentionOf(t: TestContext, db: Database, options: SqlRetentionOptions): SqlRetention {
  const retention = new SqlRetention(db, { logger: recordingLogger(), ...options })
  t.after(() => retention.close())
  return retention
}

/** An empty database, opened long before the present of the test. */
export async function opened(t: TestContext, url: string, partitions = false): Promise<Database> {
  const db = partitions ? await openPartitioned(t, url) : await open(t, url)
  t.mock.timers.enable({ apis: ['Date'], now: NOW })
  return db
}

/** Returns the lines of a file of an archive. */
export async function linesIn(folder: string, name: string): Promise<Record<string, unknown>[]> {
  const text = gunzipSync(await readFile(join(folder, name))).toString()
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

/** The name of the file of a day. */
export const nameOf = (table: string, time: number) => {
  const day = new Date(time).toISOString().slice(0, 10)
  return `${table}/${day.slice(0, 4)}/${day.slice(5, 7)}/${table}-${day}.jsonl.gz`
}
