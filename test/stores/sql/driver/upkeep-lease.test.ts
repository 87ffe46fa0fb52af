import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { markOf, UpkeepLease } from '../../../../lib/stores/sql/driver/upkeep-lease.ts'
import { type Database, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { fresh } from '../../../contracts/ledger-money.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { PATIENT, temporaryDatabase } from '../support/temporary-database.ts'

const LOST = { name: 'UpkeepLost' }

for (const { name, isSqlite, skip } of [
  { name: 'SQLite', isSqlite: true, skip: false },
  { name: 'Postgres', isSqlite: false, skip: WITHOUT_POSTGRES },
]) {
  describe(`the right to work on tables in ${name}`, { skip }, () => {
    const cleanUp = cleaningUp()
    let db: Database
    before(async () => {
      const { url, remove } = isSqlite ? await temporaryDatabase() : { url: await postgresUrl(), remove() {} }
      cleanUp.after(remove)
      db = await openDatabase(url, PATIENT)
      cleanUp.after(() => db.destroy())
    })

    /** Two processes that ask for it, at a time that a test sets. */
    function two(t: TestContext) {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      let now = 1_000_000
      t.mock.method(performance, 'now', () => now)
      const work = fresh('work')
      return {
        work,
        one: new UpkeepLease(db, work),
        other: new UpkeepLease(db, work),
        pass(ms: number): void {
          now += ms
          t.mock.timers.tick(ms)
        },
      }
    }

    it('is that of one at a time, for each work, until it is given back', async (t) => {
      const { one, other } = two(t)
      assert.deepEqual([await one.take(), await other.take(), await one.take()], [true, false, true])
      assert.equal(await new UpkeepLease(db, 'other work').take(), true)
      await other.free()
      assert.equal(await other.take(), false)
      await one.free()
      assert.equal(await other.take(), true)
      await assert.rejects(one.keep(true), LOST)
    })

    it('goes to another if the process that had it died before the clock was set back', async (t) => {
      const { one, other } = two(t)
      await one.take()
      t.mock.timers.setTime(Date.now() - 3_600_000)
      assert.equal(await other.take(), true)
      await assert.rejects(one.keep(true), LOST)
    })

    it('goes to another two minutes after the last time that it was kept', async (t) => {
      const { one, other, pass } = two(t)
      await one.take()
      pass(19_999)
      await one.keep()
      pass(1)
      await one.keep()
      pass(120_000)
      assert.equal(await other.take(), false)
      pass(1)
      assert.equal(await other.take(), true)
      await assert.rejects(one.keep(), LOST)
    })

    it('is asked for again after 20 s, or when a caller wants to be sure', async (t) => {
      const { work, one, pass } = two(t)
      const row = () => db.selectFrom('upkeep').select('until').where('name', '=', work).executeTakeFirst()
      const until = async () => (await row())?.until
      await one.take()
      const first = await until()
      pass(19_999)
      await one.keep()
      assert.equal(await until(), first)
      await one.keep(true)
      const second = await until()
      assert.equal(Number(second) - Number(first), 19_999)
      pass(19_999)
      await one.keep()
      assert.equal(await until(), second)
      pass(1)
      await one.keep()
      assert.equal(Number(await until()) - Number(second), 20_000)
    })

    it('is kept while something takes long', async (t) => {
      const { one } = two(t)
      await one.take()
      t.mock.timers.reset()
      t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() })
      const keep = t.mock.method(one, 'keep')
      const { promise, resolve } = Promise.withResolvers<string>()
      const work = one.during(promise)
      t.mock.timers.tick(19_999)
      assert.equal(keep.mock.callCount(), 0)
      t.mock.timers.tick(20_001)
      assert.deepEqual(
        keep.mock.calls.map(({ arguments: [now] }) => now),
        [true, true],
      )
      resolve('done')
      assert.equal(await work, 'done')
      t.mock.timers.tick(60_000)
      assert.equal(keep.mock.callCount(), 2)
      await Promise.allSettled(keep.mock.calls.map(({ result }) => result))
    })

    it('notes how far each work has come, forwards only, by whom it belongs to', async (t) => {
      const { one, other } = two(t)
      assert.equal(await markOf(db, 'exported'), undefined)
      await one.take()
      await one.saveMark('exported', 'b')
      await one.saveMark('pruned', 'x')
      assert.deepEqual([await markOf(db, 'exported'), await markOf(db, 'pruned')], ['b', 'x'])
      for (const back of ['a', 'b']) await assert.rejects(one.saveMark('exported', back), LOST)
      await assert.rejects(other.saveMark('exported', 'c'), LOST)
      assert.equal(await markOf(db, 'exported'), 'b')
      await one.free()
      await assert.rejects(one.saveMark('exported', 'c'), LOST)
      await other.take()
      await other.saveMark('exported', 'c')
      assert.equal(await markOf(db, 'exported'), 'c')
    })
  })
}
