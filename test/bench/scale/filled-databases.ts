import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { type Filling, fillStatements, type Wording, walletStatements } from './rows.ts'

/** Databases of one engine, gone when it is closed. */
export interface FilledDatabases {
  readonly engine: string
  /** Answers the URL of a database with the gateway's tables, filled. */
  create(filling: Filling): Promise<string>
  /** Bytes on the disk. */
  size(url: string): Promise<number>
  close(): Promise<void>
}

type Tell = (text: string) => void

const SQLITE: Wording = {
  define: (rows) =>
    `with recursive series(n) as (select 0 where ${rows} > 0 union all select n + 1 from series where n + 1 < ${rows})`,
  source: () => 'series',
  hex: (n, digits) => `printf('%0${digits}x', ${n})`,
  sha256: (text) => `sha256(${text})`,
}

const POSTGRES: Wording = {
  define: () => '',
  source: (rows) => `generate_series(cast(0 as bigint), ${rows - 1}) as series(n)`,
  hex: (n, digits) => `lpad(to_hex(${n}), ${digits}, '0')`,
  sha256: (text) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`,
}

/** SQLite files in a folder of their own. */
export async function sqliteDatabases(tell: Tell): Promise<FilledDatabases> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-scale-'))
  const fileOf = (url: string) => url.slice('sqlite:'.length)
  let files = 0
  return {
    engine: 'SQLite',
    async create(filling) {
      const url = `sqlite:${join(folder, `${++files}.db`)}`
      await (await openDatabase(url)).destroy()
      const db = new DatabaseSync(fileOf(url))
      db.function('sha256', { deterministic: true }, (text) => hashSecret(String(text)))
      db.exec(`pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive;
        pragma cache_size = -400000; pragma temp_store = memory; begin`)
      const indexes = db
        .prepare(
          `select name, sql from sqlite_master where type = 'index' and tbl_name = 'calls' and sql <> ''`,
        )
        .all()
      await fill(filling, SQLITE, indexes, tell, async (statement) => db.exec(statement))
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
    async create(filling) {
      const url = await server.createDatabase()
      await (await openDatabase(url)).destroy()
      const client = new Client({ connectionString: url })
      await client.connect()
      const run = async (statement: string) => void (await client.query(statement))
      await run(`set maintenance_work_mem = '512MB'; set work_mem = '256MB'`)
      const indexes = await client.query<{ name: string; sql: string }>(
        `select indexname as name, indexdef as sql from pg_indexes where tablename = 'calls' and indexname <> 'calls_pkey'`,
      )
      // A table that is emptied in the same transaction needs no log of what is put into it.
      await run('begin')
      await run('truncate accounts, keys, wallets, deposits, charges, calls')
      await fill(filling, POSTGRES, indexes.rows, tell, run)
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
  filling: Filling,
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
  for (const [what, statement] of fillStatements(filling, wording)) await timed(what, statement)
  for (const { name, sql } of indexes) await timed(String(name), String(sql))
  for (const [what, statement] of walletStatements()) await timed(what, statement)
}
