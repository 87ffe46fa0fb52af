import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import type { Contents, Wording } from './contents.ts'

/** Databases of one engine, gone when it is closed. */
export interface FilledDatabases {
  readonly engine: string
  /** Answers the URL of a database with the gateway's tables, filled. */
  create(contents: Contents): Promise<string>
  /** Bytes on the disk. */
  size(url: string): Promise<number>
  close(): Promise<void>
}

type Tell = (text: string) => void

export const SQLITE: Wording = {
  define: (rows) =>
    `with recursive series(n) as (select 0 where ${rows} > 0 union all select n + 1 from series where n + 1 < ${rows})`,
  source: () => 'series',
  hex: (n, digits) => `printf('%0${digits}x', ${n})`,
  isoOf: (ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${ms} / 1000.0, 'unixepoch')`,
  temporary: 'temporary',
  sorted: 'order by 1, 2',
  sha256: (text) => `sha256(${text})`,
}

export const POSTGRES: Wording = {
  define: () => '',
  source: (rows) => `generate_series(cast(0 as bigint), ${rows - 1}) as series(n)`,
  hex: (n, digits) => `lpad(to_hex(${n}), ${digits}, '0')`,
  isoOf: (ms) => `to_char(to_timestamp(${ms} / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  temporary: 'unlogged',
  sorted: '',
  sha256: (text) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`,
}

/** SQLite files in a folder of their own. */
export async function sqliteDatabases(tell: Tell): Promise<FilledDatabases> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-scale-'))
  const fileOf = (url: string) => url.slice('sqlite:'.length)
  let files = 0
  return {
    engine: 'SQLite',
    async create(contents) {
      const url = `sqlite:${join(folder, `${++files}.db`)}`
      await (await openDatabase(url)).destroy()
      const db = new DatabaseSync(fileOf(url))
      db.function('sha256', { deterministic: true }, (text) => hashSecret(String(text)))
      db.exec(`pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive;
        pragma cache_size = -200000; begin`)
      const indexes = db
        .prepare(
          `select name, sql from sqlite_master where type = 'index' and tbl_name = 'calls' and sql <> ''`,
        )
        .all()
      await fill(contents, SQLITE, indexes, tell, async (statement) => db.exec(statement))
      db.exec('commit')
      db.close()
      return url
    },
    size: async (url) => (await stat(fileOf(url))).size,
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

/** A Postgres of their own. What is filled in is neither synced nor written twice. */
export async function postgresDatabases(tell: Tell): Promise<FilledDatabases> {
  const server = await startPostgres({
    settings: { wal_level: 'minimal', max_wal_senders: 0, max_wal_size: '4GB', shared_buffers: '1GB' },
  })
  return {
    engine: 'Postgres',
    async create(contents) {
      const url = await server.createDatabase()
      const db = await openDatabase(url, { partitions: contents.prepare !== undefined })
      await contents.prepare?.(db)
      await db.destroy()
      const client = new Client({ connectionString: url })
      await client.connect()
      const run = async (statement: string) => void (await client.query(statement))
      await run(`set maintenance_work_mem = '512MB'; set work_mem = '256MB'`)
      const indexes = await client.query<{ name: string; sql: string }>(
        `select indexname as name, indexdef as sql from pg_indexes where tablename = 'calls' and indexname <> 'calls_pkey'`,
      )
      // A table that is emptied in the same transaction needs no log of what is put into it.
      await run('begin')
      await run(`truncate ${contents.tables}`)
      await run('alter table call_labels drop constraint call_labels_id')
      await fill(contents, POSTGRES, indexes.rows, tell, run)
      await run('alter table call_labels add constraint call_labels_id primary key (label, id)')
      await run('commit')
      await run('vacuum (analyze)')
      await run('checkpoint')
      await client.end()
      return url
    },
    async size(url) {
      const [row] = await server.query('select pg_database_size(current_database()) as bytes', url)
      return Number(row?.bytes)
    },
    close: () => server.close(),
  }
}

/** Indexes of `calls` are made when it is full: sorting once takes a fraction of so many single places. */
async function fill(
  { rows, sums = () => [] }: Contents,
  wording: Wording,
  indexes: readonly Record<string, unknown>[],
  tell: Tell,
  run: (statement: string) => Promise<void>,
): Promise<void> {
  const timed = async (what: string, statement: string) => {
    const start = performance.now()
    await run(statement)
    const seconds = (performance.now() - start) / 1000
    if (seconds > 1) tell(`  ${what}: ${seconds.toFixed(0)} s`)
  }
  for (const { name } of indexes) await run(`drop index ${name}`)
  for (const [what, statement] of rows(wording)) await timed(what, statement)
  // An index of a partitioned table is reported with `ONLY`, which would leave out its partitions.
  for (const { name, sql } of indexes) await timed(String(name), String(sql).replace(' ON ONLY ', ' ON '))
  for (const [what, statement] of sums()) await timed(what, statement)
}
