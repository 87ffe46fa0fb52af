import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { sql } from 'kysely'
import { type Database, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { freePort } from '../../../support/free-port.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptyPostgresUrl, postgresUrl, sharedPostgres } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const LARGEST = 2n ** 63n - 1n

function account(id: string, rpm: bigint | null = 0n) {
  const none = { name: null, tpm: null, concurrency: null, regions: null, line_regions: null }
  return { ...none, id, rpm, created_at: 1n }
}

async function fresh(t: TestContext): Promise<Database> {
  return open(t, await postgresUrl())
}

async function accountIds(db: Database): Promise<string[]> {
  const rows = await db.selectFrom('accounts').select('id').orderBy('id').execute()
  return rows.map(({ id }) => id)
}

async function connectionOf(db: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)
  return rows[0]!.pid
}

describe('values on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('amounts are exact to the last of 64 bits, sums and counts included', async (t) => {
    const db = await fresh(t)
    const amounts = [LARGEST, -LARGEST, null, 9_007_199_254_740_993n]
    const accounts = amounts.map((amount, i) => account(`a${i}`, amount))
    await db.insertInto('accounts').values(accounts).execute()
    const rows = await db.selectFrom('accounts').select('rpm').orderBy('id').execute()
    assert.deepEqual(
      rows.map(({ rpm }) => rpm),
      amounts,
    )
    const sums = await db
      .selectFrom('accounts')
      .select(({ fn }) => [
        fn.sum('rpm').as('total'),
        fn.countAll().as('count'),
        fn.avg('created_at').as('mean'),
        fn.max('rpm').as('most'),
      ])
      .executeTakeFirstOrThrow()
    assert.deepEqual(sums, { total: 9_007_199_254_740_993n, count: 4n, mean: 1, most: LARGEST })
    const none = await db
      .selectFrom('accounts')
      .select(({ fn }) => fn.sum('rpm').as('total'))
      .where('id', '=', 'nobody')
      .executeTakeFirstOrThrow()
    assert.equal(none.total, null)
  })

  it('integer columns read as number, and other programs of the process keep their types', async (t) => {
    const db = await fresh(t)
    const { rows } = await sql`select 7 as seven, 0.5::float8 as half, 1.5::numeric as part`.execute(db)
    assert.deepEqual(rows, [{ seven: 7, half: 0.5, part: 1.5 }])
    const postgres = await sharedPostgres()
    assert.deepEqual(await postgres.query('select 7::int8 as seven'), [{ seven: '7' }])
  })

  it('an amount beyond 64 bits is refused, not cut', async (t) => {
    const db = await fresh(t)
    await assert.rejects(
      db
        .insertInto('accounts')
        .values(account('a', LARGEST + 1n))
        .execute(),
      { code: '22003' },
    )
    assert.deepEqual(await accountIds(db), [])
  })

  it('texts compare and sort by their bytes, whatever language the database was set up for', async (t) => {
    const db = await fresh(t)
    const ids = ['Z', '_', 'a', 'a-b', 'aB', 'ab', 'B', '1', '-', 'é']
    await db
      .insertInto('accounts')
      .values(ids.map((id) => account(id)))
      .execute()
    const { rows } = await sql<{
      id: string
    }>`select id from accounts order by id collate "en-US-x-icu"`.execute(db)
    const byBytes = ids.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    assert.notDeepEqual(
      rows.map(({ id }) => id),
      byBytes,
      'they would sort differently',
    )
    assert.deepEqual(await accountIds(db), byBytes)
    const others = await sql<{ name: string }>`
      select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'text' and collation_name is distinct from 'C'`.execute(
      db,
    )
    assert.deepEqual(others.rows, [])
  })
})

describe('statements on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('that come again and again go on when a table they read has changed', async (t) => {
    const url = await postgresUrl()
    const db = await openDatabase(url, { poolSize: 1 })
    t.after(() => db.destroy())
    await db.insertInto('accounts').values(account('acme')).execute()
    const read = () =>
      db.selectFrom('accounts').selectAll().where('id', '=', 'acme').executeTakeFirstOrThrow()
    for (let i = 0; i < 30; i++) await read()
    const { rows } = await sql<{
      count: bigint
    }>`select count(*) as count from pg_prepared_statements`.execute(db)
    assert.ok(rows[0]!.count > 0n, 'it is kept by then')
    const before = await connectionOf(db)
    await (await sharedPostgres()).query('alter table accounts add column later text', url)
    await assert.rejects(read(), { code: '0A000' })
    assert.equal(((await read()) as { later?: string | null }).later, null)
    assert.notEqual(await connectionOf(db), before, 'what it had kept went with the connection')
  })

  it('of more kinds than are kept work all the same', async (t) => {
    const db = await fresh(t)
    for (let i = 0; i < 205; i++) {
      for (let again = 0; again < 11; again++) {
        const { rows } = await sql<{ n: bigint }>`select ${sql.raw(String(i))} + ${1}::bigint as n`.execute(
          db,
        )
        assert.equal(rows[0]?.n, BigInt(i + 1))
      }
    }
  })

  it('that take too long are ended by Postgres, and their connection goes on', async (t) => {
    const db = await openDatabase(await postgresUrl(), { poolSize: 1, statementTimeoutMs: 1500 })
    t.after(() => db.destroy())
    const before = await connectionOf(db)
    await assert.rejects(sql`select pg_sleep(60)`.execute(db), { code: '57014' })
    assert.equal(await connectionOf(db), before)
  })

  it('are not streamed', async (t) => {
    const db = await fresh(t)
    const stream = db.selectFrom('accounts').selectAll().stream()
    await assert.rejects(async () => {
      for await (const _ of stream) assert.fail()
    }, /streamed|cursor/)
  })
})

describe('opening Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('for reading only sees what others write and can write nothing', async (t) => {
    const url = await postgresUrl()
    const db = await open(t, url)
    const reader = await openDatabase(url, { readOnly: true })
    t.after(() => reader.destroy())
    await db.insertInto('accounts').values(account('acme')).execute()
    assert.deepEqual(await accountIds(reader), ['acme'])
    await assert.rejects(reader.deleteFrom('accounts').execute(), { code: '25006' })
    assert.deepEqual(await accountIds(db), ['acme'])
  })

  it('for reading only migrates nothing', async (t) => {
    const reader = await openDatabase(await emptyPostgresUrl(), { readOnly: true })
    t.after(() => reader.destroy())
    await assert.rejects(reader.selectFrom('accounts').selectAll().execute(), { code: '42P01' })
  })

  it('takes either name of the protocol', async (t) => {
    const db = await open(t, (await postgresUrl()).replace('postgres:', 'postgresql:'))
    assert.deepEqual(await accountIds(db), [])
  })

  it('refuses a database that cannot hold every text', async () => {
    const server = await sharedPostgres()
    await server.query(
      `create database bytes encoding 'SQL_ASCII' locale_provider libc locale 'C' template template0`,
    )
    await assert.rejects(
      openDatabase(server.url.replace(/\/postgres$/, '/bytes')),
      /"bytes".*SQL_ASCII.*UTF8/,
    )
  })

  it('says what is wrong where no server listens, the database does not exist, or the URL is invalid', async () => {
    const port = await freePort()
    for (const host of ['127.0.0.1', 'localhost']) {
      await assert.rejects(openDatabase(`postgres://gateway:hunter2@${host}:${port}/x`), (error: Error) => {
        assert.match(error.message, /ECONNREFUSED/)
        assert.doesNotMatch(inspect(error, { depth: 9 }), /hunter2/)
        return true
      })
    }
    const { url } = await sharedPostgres()
    await assert.rejects(openDatabase(`${url}-not`), { code: '3D000' })
    await assert.rejects(openDatabase('postgres://gateway:hunter2@:x:/'), (error: Error) => {
      assert.match(error.message, /URL is not valid/)
      assert.doesNotMatch(inspect(error, { depth: 9 }), /hunter2/)
      return true
    })
  })
})
