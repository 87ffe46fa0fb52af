import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { DatabaseTimeout } from '../../../lib/stores/sql/driver/postgres/database-timeout.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../lib/stores/sql/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

/** Far below the ten minutes and more that TCP would wait. */
const PATIENCE_MS = 20_000
const QUICK = { connectTimeoutMs: 2000, statementTimeoutMs: 2000 }

let server: PostgresServer
const cleanUp = cleaningUp()
before(async () => {
  if (WITHOUT_POSTGRES) return
  server = await startPostgres()
  cleanUp.after(() => server.close())
})

async function open(t: TestContext, options: OpenDatabaseOptions = {}): Promise<Database> {
  const db = await openDatabase(await server.createDatabase(), { ...QUICK, ...options })
  t.after(async () => {
    server.thaw()
    await db.destroy()
  })
  return db
}

const account = (id: string) => ({
  ...{ name: null, rpm: 0n, tpm: null, concurrency: null, regions: null, line_regions: null },
  id,
  created_at: 1n,
})

const ask = (db: Database) => db.selectFrom('accounts').select('id').orderBy('id').execute()

async function connectionOf(db: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)
  return rows[0]!.pid
}

/** Fails when it does not reject in time. */
async function rejection(asked: Promise<unknown>): Promise<Error> {
  const started = performance.now()
  const error = await asked.then(
    () => assert.fail('it was answered'),
    (reason: Error) => reason,
  )
  assert.ok(performance.now() - started < PATIENCE_MS, 'in time')
  return error
}

describe('a Postgres that', { skip: WITHOUT_POSTGRES }, () => {
  it('is frozen holds up no call, and no connection whose answer is owed is used again', async (t) => {
    const db = await open(t, { poolSize: 3 })
    const before = await connectionOf(db)
    server.freeze()
    // The first two on the connections that there are; the others have none to be had.
    const errors = await Promise.all(Array.from({ length: 10 }, () => rejection(ask(db))))
    assert.equal(errors.filter((error) => error instanceof DatabaseTimeout).length, 2)
    await rejection(db.transaction().execute((trx) => ask(trx)))
    server.thaw()
    assert.deepEqual(await ask(db), [])
    assert.notEqual(await connectionOf(db), before)
  })

  it('freezes in the middle of a transaction ends it at the next statement, its rollback included', async (t) => {
    const db = await open(t, { poolSize: 1 })
    const error = await rejection(
      db.transaction().execute(async (trx) => {
        await trx.insertInto('accounts').values(account('half')).execute()
        server.freeze()
        await trx.insertInto('accounts').values(account('other half')).execute()
      }),
    )
    assert.ok(error instanceof DatabaseTimeout, `${error}`)
    server.thaw()
    assert.deepEqual(await ask(db), [])
  })

  it('freezes can be closed all the same', async (t) => {
    t.after(() => server.thaw())
    const db = await openDatabase(await server.createDatabase(), QUICK)
    await ask(db)
    server.freeze()
    const asked = rejection(ask(db))
    await db.destroy()
    await asked
  })

  it('is frozen while a database is opened fails the opening', async (t) => {
    t.after(() => server.thaw())
    const url = await server.createDatabase()
    server.freeze()
    await rejection(openDatabase(url, QUICK))
  })

  for (const how of ['stop', 'kill'] as const) {
    it(`ends (${how}) ends neither the process nor the pool, idle or in a transaction`, async (t) => {
      const db = await open(t)
      await Promise.all(Array.from({ length: 5 }, () => ask(db)))
      const transaction = rejection(
        db.transaction().execute(async (trx) => {
          await trx.insertInto('accounts').values(account('lost')).execute()
          await server[how]()
          await ask(trx)
        }),
      )
      await transaction
      await rejection(ask(db))
      await server.start()
      assert.deepEqual(await ask(db), [])
      await db.insertInto('accounts').values(account('kept')).execute()
      assert.deepEqual(await ask(db), [{ id: 'kept' }])
    })
  }

  it('loses a connection between two statements of a transaction fails that transaction alone', async (t) => {
    const db = await open(t)
    const error = await rejection(
      db.transaction().execute(async (trx) => {
        await trx.insertInto('accounts').values(account('lost')).execute()
        await server.query(`select pg_terminate_backend(${await connectionOf(trx)})`)
        // Time for its farewell to come in while nobody waits for it.
        await server.query('select 1')
        await trx.insertInto('accounts').values(account('lost, too')).execute()
      }),
    )
    assert.match(error.message, /terminat|not queryable|ECONNRESET/)
    assert.deepEqual(await ask(db), [])
  })

  it('sees a transaction do nothing takes its locks from it', async (t) => {
    const url = await server.createDatabase()
    const mayGoOn = Promise.withResolvers<void>()
    const [db, other] = [
      await openDatabase(url, QUICK),
      await openDatabase(url, { statementTimeoutMs: PATIENCE_MS, lockTimeoutMs: PATIENCE_MS }),
    ]
    t.after(() => {
      mayGoOn.resolve()
      return Promise.all([db.destroy(), other.destroy()])
    })
    await db.insertInto('accounts').values(account('acme')).execute()
    const locked = Promise.withResolvers<void>()
    const idle = rejection(
      db.transaction().execute(async (trx) => {
        await trx.updateTable('accounts').set({ rpm: 1n }).where('id', '=', 'acme').execute()
        locked.resolve()
        await mayGoOn.promise
        await ask(trx)
      }),
    )
    await locked.promise
    await other.updateTable('accounts').set({ rpm: 2n }).where('id', '=', 'acme').execute()
    mayGoOn.resolve()
    await idle
    const { rpm } = await other.selectFrom('accounts').select('rpm').executeTakeFirstOrThrow()
    assert.equal(rpm, 2n)
  })
})
