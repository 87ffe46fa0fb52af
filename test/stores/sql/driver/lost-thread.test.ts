import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { type Database, openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { figures } from '../../../contracts/ledger-money.ts'
import { databaseUrl, open, PATIENT } from '../temporary-database.ts'

/** A database, and the thread that has its file. */
async function opened(t: TestContext): Promise<{ db: Database; thread: Worker; url: string }> {
  const url = await databaseUrl(t)
  const [[thread], db] = await Promise.all([once(process, 'worker'), openDatabase(url, PATIENT)])
  t.after(() => db.destroy())
  return { db, thread: thread as Worker, url }
}

const LOST = { name: 'SqliteError', code: 'ERR_SQLITE_WORKER', message: /the database thread has ended/ }

describe('a file of SQLite whose thread has ended', () => {
  it('is told to those who wait for an answer, and at once to those who ask later', async (t) => {
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
