import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { connectionsOf } from '../../../../lib/stores/sql/driver/postgres/postgres-dialect.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { BACKENDS, postgresUrl } from '../support/postgres-database.ts'
import { databaseUrl, emptyDatabaseUrl } from '../support/temporary-database.ts'

async function opened(t: TestContext, url: string, options: OpenDatabaseOptions = {}): Promise<Database> {
  const db = await openDatabase(url, options)
  t.after(() => db.destroy())
  return db
}

/** Returns a database's answer to a question that has one figure or text. */
async function told(db: Database, question: string): Promise<unknown> {
  const { rows } = await sql.raw<Record<string, unknown>>(question).execute(db)
  return Object.values(rows[0] ?? {})[0]
}

describe('a file of SQLite', () => {
  const settings = (db: Database) =>
    Promise.all(
      ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout', 'wal_autocheckpoint'].map((name) =>
        told(db, `pragma ${name}`),
      ),
    )

  it('waits five seconds for another’s write, unless configured otherwise', async (t) => {
    const url = await emptyDatabaseUrl(t)
    assert.deepEqual((await settings(await opened(t, url))).map(String), ['wal', '1', '1', '5000', '4000'])
    const other = await settings(await opened(t, url, { busyTimeoutMs: 70 }))
    assert.equal(String(other[3]), '70')
  })

  it('is made with its folder, which no other user may read, and logged', async (t) => {
    const url = await emptyDatabaseUrl(t)
    const logger = recordingLogger()
    await opened(t, url, { logger })
    const file = url.slice('sqlite:'.length)
    assert.equal((await stat(dirname(file))).mode & 0o777, 0o700)
    assert.deepEqual(logger.lines, [{ level: 'info', message: 'database opened', fields: { file } }])
  })

  it('is not made to be read', async (t) => {
    const url = await emptyDatabaseUrl(t)
    await assert.rejects(openDatabase(url, { readOnly: true }), { name: 'SqliteError' })
    await assert.rejects(stat(dirname(url.slice('sqlite:'.length))), { code: 'ENOENT' })
  })

  it('may be named with two slashes more', async (t) => {
    const url = await emptyDatabaseUrl(t)
    const named = url.replace('sqlite:', 'sqlite://')
    assert.equal(await told(await opened(t, named), 'select 1').then(String), '1')
    assert.ok((await stat(url.slice('sqlite:'.length))).isFile())
  })
})

describe('a database on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('is asked through ten connections, none of which waits for ever', async (t) => {
    const logger = recordingLogger()
    const db = await opened(t, await postgresUrl(), { logger })
    const { max, connectionTimeoutMillis, idleTimeoutMillis, keepAlive, allowExitOnIdle } = connectionsOf(db)
      .options as Record<string, unknown>
    assert.deepEqual(
      [max, connectionTimeoutMillis, idleTimeoutMillis, keepAlive, allowExitOnIdle],
      [10, 2000, 30_000, true, true],
    )
    const settings = ['statement_timeout', 'idle_in_transaction_session_timeout', 'application_name']
    assert.deepEqual(await Promise.all(settings.map((name) => told(db, `show ${name}`))), [
      '5s',
      '5s',
      'express-model-gateway',
    ])
    assert.equal(await told(db, 'show default_transaction_read_only'), 'off')
    const [line] = logger.lines
    assert.deepEqual([line?.level, line?.message], ['info', 'database opened'])
    assert.deepEqual(line?.fields, { database: await told(db, 'select current_database()') })
  })

  it('is asked with the options that are given', async (t) => {
    const url = await postgresUrl()
    await opened(t, url)
    const db = await opened(t, url, {
      readOnly: true,
      poolSize: 3,
      connectTimeoutMs: 9000,
      statementTimeoutMs: 7000,
    })
    const { max, connectionTimeoutMillis } = connectionsOf(db).options as Record<string, unknown>
    assert.deepEqual([max, connectionTimeoutMillis], [3, 9000])
    assert.deepEqual(
      await Promise.all(
        ['statement_timeout', 'default_transaction_read_only'].map((name) => told(db, `show ${name}`)),
      ),
      ['7s', 'on'],
    )
  })

  it('is none where it was not opened here', async (t) => {
    const db = await opened(t, await databaseUrl(t))
    assert.throws(() => connectionsOf(db), {
      name: 'TypeError',
      message: /must be one that openDatabase has opened/,
    })
  })
})

for (const { name, url, skip } of BACKENDS) {
  describe(`a database in ${name} that is newer than this code`, { skip }, () => {
    const opening = async (t: TestContext, ...names: string[]) => {
      const newer = await url(t)
      const db = await opened(t, newer)
      for (const later of names)
        await sql`insert into kysely_migration (name, timestamp) values (${later}, '2099-01-01')`.execute(db)
      return newer
    }

    it('is used as it is where the newer migrations only add, and that is logged once', async (t) => {
      const newer = await opening(t, '9998-later', '9999-later')
      const logger = recordingLogger()
      const [one, two] = [await openDatabase(newer, { logger }), await openDatabase(newer, { logger })]
      t.after(() => Promise.all([one.destroy(), two.destroy()]))
      assert.equal(String(await told(two, 'select count(*) from accounts')), '0')
      assert.deepEqual(
        logger.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.migrations),
        [['9998-later', '9999-later']],
      )
    })

    it('is not opened where a newer one is breaking, and stays as it is', async (t) => {
      const newer = await opening(t, '9998-later', '9999-later-breaking')
      const logger = recordingLogger()
      await assert.rejects(
        openDatabase(newer, { logger }),
        /newer than this version: it has 9999-later-breaking/,
      )
      assert.deepEqual(logger.lines, [])
    })

    it('is not opened where it lacks a migration of this code', async (t) => {
      const newer = await opening(t, '9999-later')
      const db = await opened(t, newer)
      await sql`delete from kysely_migration where name <> '9999-later'`.execute(db)
      await assert.rejects(openDatabase(newer), /was made before the first release \(9999-later\)/)
    })

    it('may be opened to be read', async (t) => {
      const newer = await url(t)
      const db = await opened(t, newer)
      await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2026')`.execute(db)
      const reading = await opened(t, newer, { readOnly: true })
      assert.equal(String(await told(reading, 'select count(*) from accounts')), '0')
    })
  })
}
