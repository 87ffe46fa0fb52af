import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rename } from 'node:fs/promises'
import { describe, it, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { type Database, openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { figures } from '../../../contracts/ledger-money.ts'
import { databaseUrl, open, PATIENT } from '../support/temporary-database.ts'

/** A database, and the thread that has its file. */
async function opened(t: TestContext): Promise<{ db: Database; thread: Worker; url: string }> {
  const url = await databaseUrl(t)
  const [[thread], db] = await Promise.all([once(process, 'worker'), openDatabase(url, PATIENT)])
  t.after(() => db.destroy())
  return { db, thread: thread as Worker, url }
}

const LOST = { name: 'SqliteError', code: 'ERR_SQLITE_WORKER', message: /the database thread has ended/ }

describe('a file of SQLite whose thread has ended', () => {
  it('rejects the requests that wait for an answer, and later ones at once', async (t) => {
    const { db, thread } = await opened(t)
    const ledger = new SqlLedger(db)
    assert.equal(await ledger.deposit('acme', 5n, 'opening', 1), 'deposited')
    const asked = [ledger.wallets(['account:acme']), ledger.deposit('acme', 7n, 'more', 2)]
    const failing = asked.map((answer) => assert.rejects(answer, LOST))
    await thread.terminate()
    await Promise.all(failing)
    await assert.rejects(ledger.wallets(['account:acme']), LOST)
    await assert.rejects(ledger.deposit('acme', 9n, 'later', 3), LOST)
  })

  it('can be closed, and be opened anew', async (t) => {
    const { db, thread, url } = await opened(t)
    await new SqlLedger(db).deposit('acme', 5n, 'opening', 1)
    await thread.terminate()
    await db.destroy()
    const ledger = new SqlLedger(await open(t, url))
    assert.deepEqual(await figures(ledger, 'acme'), [5n, 0n, 0n, 0n])
  })
})

describe('a file of SQLite that is opened at the first query', () => {
  const atFirstQuery = { readOnly: true, atFirstQuery: true }

  it('has no thread before', async (t) => {
    const { url } = await opened(t)
    const threads: unknown[] = []
    const note = (thread: Worker): unknown => threads.push(thread)
    process.on('worker', note)
    t.after(() => process.off('worker', note))
    const db = await openDatabase(url, atFirstQuery)
    const unused = await openDatabase(url, atFirstQuery)
    assert.equal(threads.length, 0)
    assert.deepEqual(await db.selectFrom('accounts').select('id').execute(), [])
    await db.selectFrom('accounts').select('id').execute()
    assert.equal(threads.length, 1)
    await Promise.all([db.destroy(), unused.destroy()])
    await assert.rejects(db.selectFrom('accounts').select('id').execute())
    assert.equal(threads.length, 1)
  })

  it('fails each query while it cannot be opened, and then answers', async (t) => {
    const { url } = await opened(t)
    const file = url.slice('sqlite:'.length)
    const db = await openDatabase(url, atFirstQuery)
    t.after(() => db.destroy())
    const ids = () => db.selectFrom('accounts').select('id').execute()
    await rename(file, `${file}-away`)
    const asked = [ids(), ids()]
    for (const each of asked) await assert.rejects(each, { name: 'SqliteError', errcode: 14 })
    await assert.rejects(ids(), { name: 'SqliteError', errcode: 14 })
    await rename(`${file}-away`, file)
    assert.deepEqual(await ids(), [])
  })
})
