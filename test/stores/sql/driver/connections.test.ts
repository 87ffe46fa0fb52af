import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { connectionFigures } from '../../../../lib/stores/sql/driver/open-database.ts'
import { openLater } from '../../../../lib/stores/sql/driver/postgres/open-postgres.ts'
import { connectionsOf } from '../../../../lib/stores/sql/driver/postgres/postgres-dialect.ts'
import { threadOf } from '../../../../lib/stores/sql/driver/sqlite/sqlite-dialect.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { farServer } from '../../../support/far-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { until, untilAsync } from '../../../support/until.ts'
import { postgresUrl, sharedPostgres } from '../support/postgres-database.ts'
import { databaseUrl, PATIENT } from '../support/temporary-database.ts'

async function opened(t: TestContext, url: string, options: OpenDatabaseOptions = {}): Promise<Database> {
  const db = await openDatabase(url, { ...PATIENT, ...options })
  t.after(() => db.destroy())
  return db
}

async function shown(db: Database, setting: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`show ${sql.ref(setting)}`.execute(db)
  return rows[0]?.[setting]
}

/** Uses so many connections until the test has looked. */
async function whileUsed(db: Database, count: number, look: () => Promise<void> | void): Promise<void> {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let begun = 0
  const using = Array.from({ length: count }, () =>
    db.connection().execute(async () => {
      begun++
      await over
    }),
  )
  const most = connectionsOf(db).size
  try {
    await until(() => begun === Math.min(count, most))
    await look()
  } finally {
    end()
    await Promise.all(using)
  }
}

describe('the connections to a Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('stay open by half while idle, and are never more than the size of the pool', async (t) => {
    const db = await opened(t, await postgresUrl(), { poolSize: 5 })
    const { used, idle, waiting } = connectionFigures(db)
    assert.deepEqual([used, waiting], [0, 0])
    assert.ok(idle >= 3 && idle <= 5, `${idle} are open`)
    await whileUsed(db, 8, () => {
      assert.deepEqual(connectionFigures(db), { used: 5, idle: 0, waiting: 3 })
      assert.equal(new Set(connectionsOf(db).sessions).size, 5)
    })
    assert.deepEqual(connectionFigures(db), { used: 0, idle: 5, waiting: 0 })
  })

  it('are all opened at once to one that is far away', async (t) => {
    const url = new URL(await postgresUrl())
    const far = await farServer(Number(url.port), 40)
    t.after(() => far.close())
    url.port = `${far.port}`
    const db = await opened(t, url.href, { poolSize: 5, readOnly: true })
    assert.deepEqual(connectionFigures(db), { used: 0, idle: 5, waiting: 0 })
  })

  it('are waited for where the server gives no more of them, until it does', async (t) => {
    const url = new URL(await postgresUrl())
    const { query } = await sharedPostgres()
    url.username = `few_${process.pid}`
    await query(`create role ${url.username} login connection limit 3`)
    t.after(() => query(`drop role ${url.username}`))
    const logger = recordingLogger()
    const times = { connectTimeoutMs: 2000, statementTimeoutMs: 5000, lockTimeoutMs: 1000 }
    const db = await openLater({
      url: url.href,
      logger,
      readOnly: true,
      partitions: false,
      size: 6,
      ...times,
    })
    t.after(() => db.destroy())
    const burst = () => Promise.all(Array.from({ length: 12 }, () => sql`select pg_sleep(0.02)`.execute(db)))
    await untilAsync(async () => (await burst()) && logger.lines.length > 0, 'the warning')
    for (let i = 0; i < 3; i++) await burst()
    const open = connectionsOf(db).sessions.length
    assert.ok(open >= 1 && open <= 3, `${open} are open`)
    assert.deepEqual(
      logger.lines.map(({ level, fields }) => [level, (fields.err as { code?: string }).code]),
      [['warn', '53300']],
    )
    await query(`alter role ${url.username} connection limit 100`)
    await untilAsync(
      async () => (await burst()) && connectionsOf(db).sessions.length === 6,
      'all connections',
    )
  })

  it('that break while they are idle are logged, and others take their place', async (t) => {
    const logger = recordingLogger()
    const db = await opened(t, await postgresUrl(), { poolSize: 2, logger })
    const before = connectionsOf(db).sessions
    const [lost] = before
    await (await sharedPostgres()).query(`select pg_terminate_backend(${lost})`)
    await until(() => logger.lines.some(({ message }) => /idle connection .* was lost/.test(message)))
    const told = logger.lines.filter(({ message }) => /was lost/.test(message))
    assert.deepEqual(
      told.map(({ level, fields }) => [level, (fields.err as { code?: string }).code]),
      [['info', '57P01']],
    )
    await whileUsed(db, 2, () => {
      const backends = connectionsOf(db).sessions
      assert.equal(backends.length, 2)
      assert.ok(!backends.includes(lost as number))
    })
  })

  it('are as many as the server allows where that is fewer, and a line in the log says so', async (t) => {
    const url = new URL(await postgresUrl())
    const { query } = await sharedPostgres()
    const role = `limited_${process.pid}`
    await query(`create role ${role} login connection limit 2`)
    t.after(() => query(`drop role ${role}`))
    url.username = role
    const logger = recordingLogger()
    const db = await openDatabase(url.href, { ...PATIENT, logger, readOnly: true, poolSize: 8 })
    try {
      const warned = logger.lines.filter(({ level }) => level === 'warn')
      assert.ok(warned.length >= 2, `${warned.length} were told of`)
      for (const { message, fields } of warned) {
        assert.match(message, /could not be opened ahead/)
        assert.equal((fields.err as { code?: string }).code, '53300')
      }
      assert.equal(connectionFigures(db).idle, 2)
      assert.equal((await sql`select 1`.execute(db)).rows.length, 1)
    } finally {
      await db.destroy()
    }
    const open = `select 1 from pg_stat_activity where usename = '${role}'`
    await untilAsync(async () => (await query(open)).length === 0)
  })

  for (const [readOnly, what] of [
    [false, 'are given up once the server takes no more writes, those too that have not said so'],
    [true, 'are given up one by one by who only reads'],
  ] as const)
    it(what, async (t) => {
      const db = await opened(t, await postgresUrl(), { poolSize: 3, readOnly })
      await whileUsed(db, 3, () => {})
      const before = connectionsOf(db).sessions
      assert.equal(before.length, 3)
      const writing = db.connection().execute(async (one) => {
        await sql`set default_transaction_read_only = on`.execute(one)
        await sql`insert into line_switches (line, enabled) values ('us', 1)`.execute(one)
      })
      await assert.rejects(writing, { code: '25006' })
      await whileUsed(db, 3, () => {
        const kept = connectionsOf(db).sessions.filter((backend) => before.includes(backend))
        assert.equal(kept.length, readOnly ? 2 : 0)
      })
    })

  it('wait for a lock as long as configured, on the isolation level that statements rely on', async (t) => {
    const url = await postgresUrl()
    const { query } = await sharedPostgres()
    const name = new URL(url).pathname.slice(1)
    await query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
    await query(`alter database ${name} set lock_timeout = '3min'`)
    const own = { lockTimeoutMs: 1000 }
    for (const [options, expected] of [
      [{}, '1s'],
      [own, '1s'],
      [{ lockTimeoutMs: 70 }, '70ms'],
      [{ lockTimeoutMs: 1 }, '1ms'],
      [{ lockTimeoutMs: 0 }, '3min'],
    ] as const) {
      const db = await opened(t, url, { readOnly: true, poolSize: 1, ...options })
      assert.equal(await shown(db, 'lock_timeout'), expected)
      assert.equal(await shown(db, 'default_transaction_isolation'), 'read committed')
    }
  })
})

describe('a database to open', () => {
  it('is named by a text, with options that are known', async () => {
    for (const url of [undefined, null, 7, new URL('postgres://a/b')])
      await assert.rejects(openDatabase(url as never), { name: 'TypeError', message: /must be a string/ })
    for (const url of ['sqlite:x.db', 'postgres://a/b'])
      for (const options of [{ poolSize: 0 }, { lockTimeoutMs: -1 }, { busyTimeout: 1 }])
        await assert.rejects(openDatabase(url, options as never), /openDatabase: /)
  })
})

describe('the thread of a file of SQLite', () => {
  it('is one connection, for which all others wait', async (t) => {
    const db = await opened(t, await databaseUrl(t))
    assert.deepEqual(connectionFigures(db), { used: 0, idle: 1, waiting: 0 })
    const asked = [threadOf(db)?.query('select 1', [])]
    assert.deepEqual(connectionFigures(db), { used: 1, idle: 0, waiting: 0 })
    asked.push(threadOf(db)?.query('select 2', []), threadOf(db)?.query('select 3', []))
    assert.deepEqual(connectionFigures(db), { used: 1, idle: 0, waiting: 2 })
    await Promise.all(asked)
    assert.deepEqual(connectionFigures(db), { used: 0, idle: 1, waiting: 0 })
  })
})
