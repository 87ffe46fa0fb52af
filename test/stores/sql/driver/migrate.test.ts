import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { MIGRATIONS, migrate, migrateDown } from '../../../../lib/stores/sql/driver/migrate.ts'
import { openDatabase } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { until } from '../../../support/until.ts'
import { BACKENDS, postgresUrl } from '../support/postgres-database.ts'
import { open, PATIENT } from '../support/temporary-database.ts'

const NAMES = Object.keys(MIGRATIONS)
const LAST = NAMES.at(-1) as string
/** The migrations of versions to come. */
const LATER = {
  ...MIGRATIONS,
  '9001-notes': {
    up: async (db) => void (await sql`alter table charges add column note text`.execute(db)),
    down: async (db) => void (await sql`alter table charges drop column note`.execute(db)),
  },
  '9002-things': {
    up: async (db) => void (await sql`create table things (id text primary key)`.execute(db)),
    down: async (db) => void (await sql`drop table things`.execute(db)),
  },
} satisfies typeof MIGRATIONS

for (const { name, url, emptyUrl, skip } of BACKENDS) {
  describe(`the migrations of a database in ${name}`, { skip }, () => {
    it('are done by a newer version, and undone for an older one', async (t) => {
      const db = await open(t, await url(t))
      const logger = recordingLogger()
      await migrate(db, logger, LATER)
      await sql`select note from charges`.execute(db)
      await sql`select id from things`.execute(db)
      assert.deepEqual(await migrateDown(db, LAST, logger, LATER), ['9002-things', '9001-notes'])
      await assert.rejects(sql`select note from charges`.execute(db))
      await assert.rejects(sql`select id from things`.execute(db))
      await migrate(db, logger, LATER)
      await sql`select note from charges`.execute(db)
      assert.deepEqual(logger.lines, [])
    })

    it('are not undone where one is unknown, was not done, cannot be undone, or is newer', async (t) => {
      const db = await open(t, await url(t))
      const logger = recordingLogger()
      await assert.rejects(migrateDown(db, '9001-nothing', logger, LATER), {
        message: `there is no migration "9001-nothing"; the last ones are ${[...NAMES, '9001-notes', '9002-things'].slice(-5).join(', ')}`,
      })
      await assert.rejects(migrateDown(db, '9001-notes', logger, LATER), /has not got as far as 9001-notes/)
      await migrate(db, logger, LATER)
      const stuck = { ...LATER, '9002-things': { up: LATER['9002-things'].up } }
      await assert.rejects(migrateDown(db, LAST, logger, stuck), /9002-things cannot be undone/)
      await assert.rejects(migrateDown(db, LAST, logger), /9001-notes cannot be undone/)
      await sql`select note from charges`.execute(db)
    })

    it('do not begin where the database contains shares of regions', async (t) => {
      const database = await url(t)
      const db = await open(t, database)
      await sql`create table shares (wallet text primary key)`.execute(db)
      await assert.rejects(openDatabase(database, { ...PATIENT, logger: recordingLogger() }), {
        message:
          'it contains shares of regions, which this version does not support: start with a new database',
      })
    })

    it('do not begin where the database was made before the first release', async (t) => {
      const database = await emptyUrl(t)
      const db = await open(t, database)
      await sql`update kysely_migration set name = '0001-accounts-keys-calls' where name = ${NAMES[0]}`.execute(
        db,
      )
      await assert.rejects(openDatabase(database, { ...PATIENT, logger: recordingLogger() }), {
        message: 'it was made before the first release (0001-accounts-keys-calls): start with a new database',
      })
    })
  })
}

describe('a migration of a table that others use', { skip: WITHOUT_POSTGRES }, () => {
  it('waits for no lock for long, so that charges go on, and is done behind a backup', async (t) => {
    const url = await postgresUrl()
    const [db, backup] = [await open(t, url), await open(t, url)]
    const logger = recordingLogger()
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    let migrating: Promise<void> | undefined
    let longest = 0
    await backup.transaction().execute(async (trx) => {
      await sql`select from charges`.execute(trx)
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
      const migrator = await openDatabase(url, { ...PATIENT, lockTimeoutMs: 100, poolSize: 1 })
      migrating = migrate(migrator, logger, LATER).finally(() => migrator.destroy())
      const writing = (async () => {
        for (let n = 0; !logger.lines.some(({ level }) => level === 'warn'); n++) {
          const at = performance.now()
          await sql`insert into charges (request_id, account, amount, at, usage)
            values (${`req_${n}`}, 'acme', 1, 1, '{}')`.execute(db)
          longest = Math.max(longest, performance.now() - at)
        }
      })()
      await until(() => logger.lines.some(({ level }) => level === 'warn'), 'the warning', 30_000)
      await writing
      end()
    })
    await over
    await migrating
    assert.deepEqual(
      logger.lines.map(({ level, fields }) => [level, fields]),
      [['warn', { migration: '9001-notes' }]],
    )
    assert.ok(longest < 5000, `a charge waited for ${longest} ms`)
    await sql`select note from charges`.execute(db)
  })
})
