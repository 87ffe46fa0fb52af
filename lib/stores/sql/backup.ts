import { spawn } from 'node:child_process'
import { access, copyFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync, DatabaseSyncOptions } from 'node:sqlite'
import { sql } from 'kysely'
import { isPostgres } from './driver/database.ts'
import { openDatabase } from './driver/open-database.ts'
import type { Database } from './driver/tables.ts'
import { noteRestored } from './ledger/restored.ts'

/** The first bytes of a file of SQLite, and of an archive of `pg_dump`. */
const SQLITE_FILE = 'SQLite format 3\0'
const POSTGRES_FILE = 'PGDMP'

/** Postgres reads at most 30,000 rows of each table, from anywhere. */
const ANALYZED_WITHIN_MS = 600_000

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Writes a backup of a database, as of one moment, while gateways use it. SQLite copies itself into another file; Postgres needs
 * the program `pg_dump`, of the server's version or a later one.
 *
 * It is for a process of its own: SQLite blocks the event loop meanwhile.
 *
 * @param file is not there yet. It appears when the backup is complete.
 * @param env the environment of `pg_dump`, mostly `process.env`.
 * @throws Error if there is such a file, or the backup cannot be made; then there is no file.
 * @example
 * await backupDatabase('sqlite:.data/gateway.db', '/backups/gateway-monday', process.env)
 */
export async function backupDatabase(url: string, file: string, env: Environment): Promise<void> {
  if (await exists(file)) throw new Error(`${file} is there already`)
  const partial = `${file}.partial`
  await mkdir(dirname(resolve(file)), { recursive: true, mode: 0o700 })
  await rm(partial, { force: true })
  const db = await openDatabase(url, { readOnly: true, poolSize: 1 })
  try {
    if (isPostgres(db)) await dump(url, partial, await tablesOf(db), env)
    else await copySqlite(sqliteFile(url), partial)
    await sync(partial)
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  } finally {
    await db.destroy()
  }
}

/**
 * Puts a backup in the place of a database, and notes that for `SqlLedger.check`. End all gateways that use it first: a SQLite file
 * that a process has open is refused. The former file of SQLite stays beside it; Postgres, which needs `pg_restore`, replaces its
 * tables in one transaction.
 *
 * @param env the environment of `pg_restore`, mostly `process.env`.
 * @returns the path of the former file of SQLite; undefined where there was none.
 * @throws Error if the file is no backup of such a database, or cannot be restored; then all stays as it was. Another one if it is
 *   restored, and Postgres could not count its rows.
 * @example
 * await restoreDatabase('sqlite:.data/gateway.db', '/backups/gateway-monday', process.env)
 */
export async function restoreDatabase(
  url: string,
  file: string,
  env: Environment,
): Promise<string | undefined> {
  const isOfPostgres = await isBackupOf(file, POSTGRES_FILE)
  if (!isOfPostgres && !(await isBackupOf(file, SQLITE_FILE))) throw new Error(`${file} is no backup`)
  if (isOfPostgres === url.startsWith('sqlite:'))
    throw new Error(`${file} is a backup of ${isOfPostgres ? 'Postgres' : 'SQLite'}`)
  const former = isOfPostgres
    ? await load(url, file, env)
    : await replaceSqlite(sqliteFile(url), resolve(file))
  const db = await openDatabase(url, { poolSize: 1, statementTimeoutMs: ANALYZED_WITHIN_MS })
  try {
    await noteRestored(db, { at: Date.now(), charges: 0, amount: 0n, unknownKeys: [] })
    if (isOfPostgres) await analyze(db)
  } finally {
    await db.destroy()
  }
  return former
}

/** A backup has no statistics, without which Postgres reads whole tables to find one row. */
async function analyze(db: Database): Promise<void> {
  try {
    await sql`analyze`.execute(db)
  } catch (cause) {
    throw new Error('the backup is restored, but Postgres could not count its rows: run ANALYZE', { cause })
  }
}

async function copySqlite(from: string, to: string): Promise<void> {
  const db = await openFile(from, { readOnly: true })
  try {
    db.prepare('vacuum into ?').run(to)
  } finally {
    db.close()
  }
}

async function replaceSqlite(target: string, backup: string): Promise<string | undefined> {
  const fresh = `${target}.restoring`
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  await copyFile(backup, fresh)
  try {
    await assertWhole(fresh)
    await sync(fresh)
    if (!(await exists(target))) {
      await rename(fresh, target)
      return undefined
    }
    await leaveWal(target)
    const former = `${target}.before-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
    await rename(target, former)
    await rename(fresh, target)
    return former
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
}

async function assertWhole(file: string): Promise<void> {
  const db = await openFile(file, { readOnly: true })
  try {
    const [row] = db.prepare('pragma integrity_check(1)').all()
    if (row?.integrity_check !== 'ok') throw new Error(`the backup is damaged: ${row?.integrity_check}`)
    if (!db.prepare("select 1 from sqlite_schema where name = 'wallets'").get())
      throw new Error('the backup is not one of a gateway')
  } finally {
    db.close()
  }
}

/** Has all be in the file itself, which needs it alone. @throws Error if a process has it open. */
async function leaveWal(file: string): Promise<void> {
  const db = await openFile(file, { timeout: 1000 })
  try {
    db.exec('pragma journal_mode = delete')
  } catch (error) {
    throw new Error('a process still uses the database: stop all gateways first', { cause: error })
  } finally {
    db.close()
  }
}

/** Loads SQLite only here: an older Node, which has none, would fail before it could be refused with a clear sentence. */
async function openFile(file: string, options: DatabaseSyncOptions): Promise<DatabaseSync> {
  const { DatabaseSync } = await import('node:sqlite')
  return new DatabaseSync(file, options)
}

function sqliteFile(url: string): string {
  return resolve(url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, ''))
}

/** Returns the tables of the schema in which those of the gateway are, as `pg_dump` takes them. */
async function tablesOf(db: Database): Promise<string[]> {
  const { rows } = await sql<{ schema: string; name: string }>`
    select table_schema as schema, table_name as name from information_schema.tables
    where table_schema = (select table_schema from information_schema.tables
      where table_name = 'wallets' and table_schema = any(current_schemas(false)) limit 1)
    and table_type = 'BASE TABLE'`.execute(db)
  if (rows.length === 0) throw new Error('the database has no tables of a gateway')
  return rows.map(({ schema, name }) => `"${schema}"."${name}"`)
}

function dump(url: string, file: string, tables: readonly string[], env: Environment): Promise<void> {
  const what = tables.map((table) => `--table=${table}`)
  const how = ['--format=custom', '--no-owner', '--no-privileges', `--file=${file}`]
  return runTool('pg_dump', url, [...how, ...what], env)
}

async function load(url: string, file: string, env: Environment): Promise<undefined> {
  const how = ['--clean', '--if-exists', '--no-owner', '--no-privileges', '--single-transaction']
  await runTool('pg_restore', url, [...how, '--exit-on-error', file], env)
}

/** Runs a program of Postgres. Its arguments, which others on the machine can read, do not have the password. */
function runTool(name: string, url: string, args: readonly string[], variables: Environment): Promise<void> {
  const [, scheme = '', user, password, rest = ''] =
    /^(postgres(?:ql)?:\/\/)(?:([^:@/]*)(?::([^@/]*))?@)?(.*)$/.exec(url) ?? []
  const address = `${scheme}${user === undefined ? '' : `${user}@`}${rest}`
  const env = {
    ...variables,
    ...(password !== undefined && { PGPASSWORD: decodeURIComponent(password) }),
  }
  const { promise, resolve: done, reject } = Promise.withResolvers<void>()
  const child = spawn(name, [`--dbname=${address}`, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })
  child.once('error', (error) =>
    reject(new Error(`${name} cannot be run: install the programs of Postgres`, { cause: error })),
  )
  child.once('close', (code) => {
    if (code === 0) done()
    else reject(new Error(`${name}: ${said.trim()}`))
  })
  return promise
}

async function isBackupOf(file: string, beginning: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer } = await handle.read(Buffer.alloc(beginning.length), 0, beginning.length, 0)
    return buffer.toString('latin1') === beginning
  } finally {
    await handle.close()
  }
}

async function sync(file: string): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
