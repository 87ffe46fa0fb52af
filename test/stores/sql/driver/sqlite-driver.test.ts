import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout, setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { SqliteError } from '../../../../lib/stores/sql/driver/sqlite/sqlite-client.ts'
import { type Database, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { databaseUrl, emptyDatabaseUrl, open } from '../support/temporary-database.ts'

const LARGEST = 2n ** 63n - 1n

function account(id: string, rpm: bigint | null = 0n) {
  const none = { name: null, tpm: null, concurrency: null, regions: null, line_regions: null }
  return { ...none, id, rpm, created_at: 1n }
}

async function fresh(t: TestContext): Promise<Database> {
  return open(t, await databaseUrl(t))
}

async function accountIds(db: Database): Promise<string[]> {
  const rows = await db.selectFrom('accounts').select('id').orderBy('id').execute()
  return rows.map(({ id }) => id)
}

describe('transactions', () => {
  it('let no other query in between, so that undoing one undoes nothing else', async (t) => {
    const db = await fresh(t)
    const order: string[] = []
    const written = Promise.withResolvers<void>()
    const mayFail = Promise.withResolvers<void>()
    const failing = db.transaction().execute(async (trx) => {
      await trx.insertInto('accounts').values(account('undone')).execute()
      written.resolve()
      await mayFail.promise
      order.push('first ends')
      throw new Error('on purpose')
    })
    await written.promise
    const others = [
      db
        .insertInto('accounts')
        .values(account('alone'))
        .execute()
        .then(() => order.push('alone')),
      db
        .transaction()
        .execute((trx) => trx.insertInto('accounts').values(account('second')).execute())
        .then(() => order.push('second')),
    ]
    for (let i = 0; i < 20; i++) await turn()
    assert.deepEqual(order, [])
    mayFail.resolve()
    await assert.rejects(failing, /on purpose/)
    await Promise.all(others)
    assert.deepEqual(order, ['first ends', 'alone', 'second'])
    assert.deepEqual(await accountIds(db), ['alone', 'second'])
  })

  it('that read first and write later do not lose writes of another handle on the file', async (t) => {
    const url = await databaseUrl(t)
    const handles = await Promise.all([open(t, url), open(t, url), open(t, url)])
    await handles[0]!.insertInto('accounts').values(account('acme', 0n)).execute()
    const deposit = (db: Database) =>
      db.transaction().execute(async (trx) => {
        const { rpm } = await trx.selectFrom('accounts').select('rpm').executeTakeFirstOrThrow()
        await trx
          .updateTable('accounts')
          .set({ rpm: rpm! + 1n })
          .execute()
      })
    await Promise.all(handles.flatMap((db) => Array.from({ length: 20 }, () => deposit(db))))
    const { rpm } = await handles[1]!.selectFrom('accounts').select('rpm').executeTakeFirstOrThrow()
    assert.equal(rpm, 60n)
  })

  it('that fail at a statement leave the database usable', async (t) => {
    const db = await fresh(t)
    const failing = db.transaction().execute(async (trx) => {
      await trx.insertInto('accounts').values(account('acme')).execute()
      await sql`select * from nowhere`.execute(trx)
    })
    await assert.rejects(failing, /no such table: nowhere/)
    assert.deepEqual(await accountIds(db), [])
    await db.insertInto('accounts').values(account('acme')).execute()
  })
})

describe('values', () => {
  it('amounts are exact to the last of 64 bits, sums and counts included', async (t) => {
    const db = await fresh(t)
    await db
      .insertInto('accounts')
      .values([
        account('a', LARGEST),
        account('b', -LARGEST),
        account('c', null),
        account('d', 9_007_199_254_740_993n),
      ])
      .execute()
    const rows = await db.selectFrom('accounts').select('rpm').orderBy('id').execute()
    assert.deepEqual(
      rows.map(({ rpm }) => rpm),
      [LARGEST, -LARGEST, null, 9_007_199_254_740_993n],
    )
    const { total, count } = await db
      .selectFrom('accounts')
      .select(({ fn }) => [fn.sum<bigint>('rpm').as('total'), fn.countAll<bigint>().as('count')])
      .executeTakeFirstOrThrow()
    assert.equal(total, 9_007_199_254_740_993n)
    assert.equal(count, 4n)
  })

  it('an amount beyond 64 bits is refused, not cut', async (t) => {
    const db = await fresh(t)
    await assert.rejects(
      db
        .insertInto('accounts')
        .values(account('a', LARGEST + 1n))
        .execute(),
      SqliteError,
    )
    assert.deepEqual(await accountIds(db), [])
  })

  it('whole numbers stay whole where a column has no type', async (t) => {
    const db = await fresh(t)
    const { rows } = await sql`select typeof(${7}) as whole, typeof(${0.5}) as part, ${7} as seven`.execute(
      db,
    )
    assert.deepEqual(rows, [{ whole: 'integer', part: 'real', seven: 7n }])
  })

  it('more statements than are kept prepared work all the same', async (t) => {
    const db = await fresh(t)
    for (let i = 0; i < 300; i++) {
      const { rows } = await sql.raw<{ n: bigint }>(`select ${i} as n`).execute(db)
      assert.equal(rows[0]?.n, BigInt(i))
    }
  })
})

describe('faults', () => {
  it('arrive with SQLite’s message and codes', async (t) => {
    const db = await fresh(t)
    await db.insertInto('accounts').values(account('acme')).execute()
    await assert.rejects(db.insertInto('accounts').values(account('acme')).execute(), (error) => {
      assert.ok(error instanceof SqliteError)
      assert.deepEqual([error.code, error.errcode], ['ERR_SQLITE_ERROR', 1555])
      assert.match(error.message, /UNIQUE constraint failed: accounts\.id/)
      return true
    })
  })

  it('a key without its account is refused', async (t) => {
    const db = await fresh(t)
    const none = { expires_at: null, allow_ips: null, allow_models: null, rpm: null, tpm: null }
    const key = { ...none, id: 'k', account: 'nobody', secret_hash: 'x', enabled: 1, created_at: 1n }
    await assert.rejects(db.insertInto('keys').values(key).execute(), /FOREIGN KEY/)
  })

  it('a file that is no database is an error when it is opened', async (t) => {
    const url = await databaseUrl(t)
    const file = `${url.slice('sqlite:'.length)}-not`
    await (await openDatabase(url)).destroy()
    await writeFile(file, 'no database '.repeat(100))
    await assert.rejects(openDatabase(`sqlite:${file}`), { name: 'SqliteError', errcode: 26 })
    await assert.rejects(openDatabase(`sqlite:${file}-missing`, { readOnly: true }), SqliteError)
  })

  for (const [what, change] of [
    ['removed', (file: string) => rename(file, `${file}-old`)],
    ['replaced', (file: string) => copyFile(file, `${file}-new`).then(() => rename(`${file}-new`, file))],
  ] as const)
    it(`a file that was ${what} takes nothing any more, which would be lost`, async (t) => {
      const url = await databaseUrl(t)
      const db = await open(t, url)
      await db.insertInto('accounts').values(account('before')).execute()
      await change(url.slice('sqlite:'.length))
      const told = { name: 'SqliteError', message: /was removed or replaced while it was in use/ }
      const insert = () => db.insertInto('accounts').values(account('after')).execute()
      await assert.rejects(insert, told)
      await assert.rejects(
        db.transaction().execute((trx) => trx.insertInto('accounts').values(account('after')).execute()),
        told,
      )
    })

  it('a file whose folder cannot be looked into takes nothing until it can be', async (t) => {
    const url = await databaseUrl(t)
    const db = await open(t, url)
    const folder = dirname(url.slice('sqlite:'.length))
    await rename(folder, `${folder}-away`)
    await symlink(folder, folder)
    const insert = () => db.insertInto('accounts').values(account('after')).execute()
    await assert.rejects(insert, { name: 'SqliteError', message: /^ELOOP/ })
    await rm(folder)
    await rename(`${folder}-away`, folder)
    await insert()
    assert.deepEqual(await accountIds(db), ['after'])
  })

  it('URLs of other kinds are refused', async () => {
    for (const url of ['', 'sqlite:', 'memory:', 'mysql://x']) {
      await assert.rejects(openDatabase(url), { name: 'TypeError' }, url)
    }
  })
})

describe('a database in memory', () => {
  it('belongs to its handle alone, and is gone with it', async () => {
    const [one, other] = await Promise.all([openDatabase('sqlite::memory:'), openDatabase('sqlite::memory:')])
    await one.insertInto('accounts').values(account('acme')).execute()
    assert.deepEqual([await accountIds(one), await accountIds(other)], [['acme'], []])
    await Promise.all([one.destroy(), other.destroy()])
    assert.equal(existsSync(':memory:'), false)
  })

  it('is refused for reading only, because it has no other handle', async () => {
    await assert.rejects(openDatabase('sqlite::memory:', { readOnly: true }), { name: 'TypeError' })
  })
})

describe('opening', () => {
  it('waits for another’s use of the file to end before it switches it to WAL', async (t) => {
    const file = `${(await emptyDatabaseUrl(t)).slice('sqlite:'.length)}-used`
    await mkdir(dirname(file))
    const other = new DatabaseSync(file)
    other.exec('create table theirs (id integer); begin immediate; insert into theirs values (1)')
    const opening = openDatabase(`sqlite:${file}`)
    let opened = false
    const done = opening.then((db) => {
      opened = true
      return db.destroy()
    })
    await setTimeout(150)
    assert.equal(opened, false)
    other.close()
    await done
  })
})

describe('closing', () => {
  it('waits for what was asked before, and refuses what comes after', async (t) => {
    const url = await databaseUrl(t)
    const db = await openDatabase(url)
    const asked = db.insertInto('accounts').values(account('acme')).execute()
    await turn()
    await db.destroy()
    await asked
    await assert.rejects(db.selectFrom('accounts').selectAll().execute())
    assert.deepEqual(await accountIds(await open(t, url)), ['acme'])
  })

  it('a read-only handle sees what others write and can write nothing', async (t) => {
    const url = await databaseUrl(t)
    const db = await open(t, url)
    const reader = await openDatabase(url, { readOnly: true })
    t.after(() => reader.destroy())
    await db.insertInto('accounts').values(account('acme')).execute()
    assert.deepEqual(await accountIds(reader), ['acme'])
    await assert.rejects(reader.deleteFrom('accounts').execute(), /readonly/)
    assert.deepEqual(await accountIds(db), ['acme'])
  })
})
