import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { connectionsOf } from '../../../../lib/stores/sql/driver/postgres/postgres-dialect.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl, sharedPostgres } from '../support/postgres-database.ts'

/** The settings that PgBouncer accepts at a login without further configuration. */
const TAKEN = ['user', 'database', 'application_name', 'client_encoding']
/** The message with the number of the server's process. */
const BACKEND_KEY = Buffer.from([0x4b, 0, 0, 0, 12])

/** The bytes before the number of the process that serves a session: that it is no standby, and the length. */
const NO_STANDBY = Buffer.from([0, 0, 0, 1, 0x66, 0, 0, 0])

/**
 * Passes a connection on as a pooler does: it accepts few settings, and sends its own number for the server's process.
 *
 * @param mode `transaction`: one process of the server serves all.
 */
async function pooled(
  t: TestContext,
  url: string,
  mode: 'session' | 'transaction' = 'session',
): Promise<{ url: string; refused: Set<string> }> {
  const refused = new Set<string>()
  const pooler = createServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1')
    near.once('data', (login) => {
      const words = login.toString('utf8', 8).split('\0')
      for (let i = 0; i < words.length && words[i] !== ''; i += 2)
        if (!TAKEN.includes(words[i] as string)) refused.add(words[i] as string)
      far.write(login)
      near.pipe(far)
    })
    far.on('data', (chunk) => {
      const at = chunk.indexOf(BACKEND_KEY)
      if (at !== -1) chunk.writeInt32BE(-1, at + BACKEND_KEY.length)
      const row = mode === 'session' ? -1 : chunk.indexOf(NO_STANDBY)
      if (row !== -1) {
        const digits = row + NO_STANDBY.length + 1
        chunk.fill('1', digits, digits + (chunk[digits - 1] as number))
      }
      near.write(chunk)
    })
    far.on('close', () => near.destroy()).on('error', () => {})
    near.on('close', () => far.destroy()).on('error', () => {})
  })
  await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve))
  t.after(() => pooler.close())
  const through = new URL(url)
  through.port = `${(pooler.address() as AddressInfo).port}`
  return { url: through.href, refused }
}

async function opened(t: TestContext, url: string, options: OpenDatabaseOptions = {}): Promise<Database> {
  const db = await openDatabase(url, { logger: recordingLogger(), poolSize: 1, ...options })
  t.after(() => db.destroy())
  return db
}

async function settingsOf(db: Database): Promise<string[]> {
  const { rows } = await sql<Record<string, string>>`
    select current_setting('transaction_isolation') as level, current_setting('transaction_read_only') as reading,
      current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
      current_setting('idle_in_transaction_session_timeout') as idle`.execute(db)
  return Object.values(rows[0] ?? {})
}

describe('settings of a connection to Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('come behind the login, because a pooler refuses or ignores them there', async (t) => {
    const { url, refused } = await pooled(t, await postgresUrl())
    const db = await opened(t, url)
    assert.deepEqual([...refused], [])
    assert.deepEqual(await settingsOf(db), ['read committed', 'off', '5s', '1s', '5s'])
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)
    assert.deepEqual(
      connectionsOf(db).sessions,
      rows.map(({ pid }) => pid),
    )
  })

  it('cannot be made behind a pooler in transaction mode, and the error says so', async (t) => {
    const { url } = await pooled(t, await postgresUrl(), 'transaction')
    await assert.rejects(opened(t, url, { poolSize: 4 }), /set it to session mode/)
  })

  it('let the server end none that is idle, whatever its role says', async (t) => {
    const url = await postgresUrl()
    const database = new URL(url).pathname.slice(1)
    await (await sharedPostgres()).query(`alter database ${database} set idle_session_timeout = '300ms'`)
    const logger = recordingLogger()
    const db = await opened(t, url, { logger, poolSize: 4 })
    const own = [...connectionsOf(db).sessions]
    await sleep(1000)
    assert.deepEqual(connectionsOf(db).sessions, own)
    assert.doesNotMatch(JSON.stringify(logger.lines), /was lost/)
  })

  it('hold for a URL that names a user and, as for a socket, no host', async (t) => {
    const { port, pathname } = new URL(await postgresUrl())
    const { query } = await sharedPostgres()
    const database = pathname.slice(1)
    await query(`alter database ${database} set default_transaction_isolation = serializable`)
    const url = `postgres://postgres:x@/${database}?host=127.0.0.1&port=${port}`
    assert.deepEqual(await settingsOf(await opened(t, url, { readOnly: true })), [
      'read committed',
      'on',
      '5s',
      '1s',
      '5s',
    ])
  })
})
