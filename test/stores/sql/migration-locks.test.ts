import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { openDatabase, undoMigrations } from '../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { untilAsync } from '../../support/until.ts'
import { olderDatabase } from './older-database.ts'
import { PATIENT } from './temporary-database.ts'

/** After it, `charges` and `calls` become tables with partitions. */
const OLDER = '0025-webhook-positions'
/** When calls whose charges wait begin to fail. It is much more than the tenth of a second that a migration waits. */
const TOO_LONG_MS = 1000

describe('migrations of tables that others use', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()
  let postgres: PostgresServer
  before(async () => {
    postgres = await startPostgres({ settings: { autovacuum_naptime: 1 } })
    cleanUp.after(() => postgres.close())
  })

  async function olderUrl(): Promise<string> {
    const url = await postgres.createDatabase()
    await (await olderDatabase(url, OLDER)).destroy()
    return url
  }

  async function connect(t: TestContext, url: string): Promise<Client> {
    const client = new Client(url)
    await client.connect()
    t.after(() => client.end())
    return client
  }

  it('may take hours for a statement, and minutes for what keeps a lock without one', async (t) => {
    const url = await olderUrl()
    // Each statement that makes or changes a table notes what its connection may do.
    const SETTINGS = ['statement_timeout', 'idle_in_transaction_session_timeout']
    await postgres.query('create table noted (setting text, ms bigint)', url)
    await postgres.query(
      `create function note() returns event_trigger language plpgsql as $$ begin
        insert into noted select name, setting::bigint from pg_settings where name in ('${SETTINGS.join("', '")}');
      end $$`,
      url,
    )
    await postgres.query('create event trigger noting on ddl_command_start execute function note()', url)
    const db = await openDatabase(url, { ...PATIENT, logger: recordingLogger() })
    t.after(() => db.destroy())
    const noted = await postgres.query('select setting, min(ms), max(ms) from noted group by setting', url)
    const [idle, statement] = noted.sort((x, y) => String(x.setting).localeCompare(String(y.setting)))
    const HOUR = 3_600_000
    assert.ok(Number(statement?.min) >= 12 * HOUR, `${statement?.min}`)
    assert.ok(Number(idle?.min) > 0 && Number(idle?.max) <= HOUR / 6, `${idle?.max}`)
  })

  it('hold up nobody for long while a backup reads them, and are done behind it', async (t) => {
    const url = await olderUrl()
    const writer = await connect(t, url)
    const charge = () =>
      writer.query(
        `insert into charges (request_id, account, amount, at, basis) values ('${newRequestId()}', 'acme', 1, 1, '')`,
      )
    await charge()
    const backup = await connect(t, url)
    await backup.query('begin')
    await backup.query('select from charges')
    const { lines, ...logger } = recordingLogger()
    const opening = openDatabase(url, { ...PATIENT, logger })
    let longest = 0
    while (!lines.some(({ level }) => level === 'warn')) {
      const startedAt = performance.now()
      await charge()
      longest = Math.max(longest, performance.now() - startedAt)
      await sleep(5)
    }
    await backup.query('commit')
    await (await opening).destroy()
    assert.ok(longest > 0 && longest < TOO_LONG_MS, `${longest} ms`)
    const warned = lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)
    assert.deepEqual(warned, [{ migration: '0026-partition-bounds' }])
  })

  it('end an autovacuum', async (t) => {
    const url = await olderUrl()
    const client = await connect(t, url)
    await client.query(
      'alter table charges set (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)',
    )
    await client.query(`insert into charges (request_id, account, amount, at, basis)
      select 'req_' || i, 'acme', 1, 1, '' from generate_series(1, 20000) as i`)
    await client.query('update charges set at = 2')
    const running = async () =>
      (await client.query('select 1 from pg_stat_progress_vacuum where relid = to_regclass($1)', ['charges']))
        .rows.length > 0
    await untilAsync(running, 'an autovacuum')
    const { lines, ...logger } = recordingLogger()
    await (await openDatabase(url, { ...PATIENT, logger })).destroy()
    assert.deepEqual(
      lines.filter(({ level }) => level !== 'info'),
      [],
    )
  })

  it('are undone behind a backup, and say once what they wait for', async (t) => {
    const url = await postgres.createDatabase()
    await (await openDatabase(url, PATIENT)).destroy()
    const backup = await connect(t, url)
    await backup.query('begin')
    await backup.query('select from charges')
    const said = t.mock.method(console, 'warn', () => {})
    const undoing = undoMigrations(url, OLDER)
    const watcher = await connect(t, url)
    let tries = 0
    let isWaiting = false
    await untilAsync(async () => {
      const { rows } = await watcher.query(
        `select from pg_locks where relation = to_regclass('charges') and not granted`,
      )
      if (rows.length > 0 && !isWaiting) tries++
      isWaiting = rows.length > 0
      return tries === 2 && !isWaiting
    }, 'the end of the second try')
    await backup.query('commit')
    assert.equal((await undoing).at(-1), '0026-partition-bounds')
    assert.equal(said.mock.callCount(), 1)
  })
})
