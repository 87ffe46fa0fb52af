import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { NOT_KNOWN } from '../../../../lib/core/usage/index.ts'
import {
  type Database,
  SqlCallStore,
  SqlLedger,
  SqlUsageCounter,
  SqlUsageStore,
} from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { untilAsync } from '../../../support/until.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const MONTH_MS = 31 * 86_400_000
const monthsAgo = (months: number) => Date.now() - months * MONTH_MS

/** Runs the counter once; returns what it logs. */
async function run(t: TestContext, db: Database, keepFineRowsMs?: number): Promise<string[]> {
  const logged: string[] = []
  const log = (_: object, message?: string) => void logged.push(message ?? '')
  const logger = { info: log, warn: log, error: log }
  const counter = new SqlUsageCounter(db, { logger, ...(keepFineRowsMs && { keepFineRowsMs }) })
  t.after(() => counter.close())
  await counter.counted()
  return logged
}

async function filled(db: Database): Promise<SqlLedger> {
  const ledger = new SqlLedger(db)
  for (const account of ['acme', 'globex'])
    for (const months of [27, 24, 2])
      await ledger.settle([
        charge(account, BigInt(months), { at: monthsAgo(months), usage: { ...NOT_KNOWN, user: 'ann' } }),
      ])
  return ledger
}

const REFUSED = 205

/** Returns what each account was charged, by user. */
async function byUser(db: Database): Promise<unknown[]> {
  const span = { from: 0, to: Date.now() + MONTH_MS, limit: 100 }
  const rows = await new SqlUsageStore(db).read({ ...span, groupBy: ['account', 'user'] })
  return rows.map(({ groups, sums }) => [...groups, sums.charged])
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`usage of users and tags in ${name}`, { skip }, () => {
    it('is kept for 25 months, or as long as is said, and all other usage for good', async (t) => {
      const { db } = await emptied()
      const ledger = await filled(db)
      assert.deepEqual(await run(t, db), [])
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 26n],
        ['globex', 'ann', 26n],
      ])
      assert.deepEqual((await ledger.check()).violations, [])
      await run(t, db, 4 * MONTH_MS)
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 2n],
        ['globex', 'ann', 2n],
      ])
      const span = { from: 0, to: Date.now() + MONTH_MS, limit: 100 }
      const [all] = await new SqlUsageStore(db).read({ ...span, groupBy: [] })
      assert.equal(all?.sums.charged, 2n * (27n + 24n + 2n))
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('is kept for good if it is to be kept for longer than dates reach, and nothing fails', async (t) => {
      const { db } = await emptied()
      await filled(db)
      for (const time of [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER])
        assert.deepEqual(await run(t, db, time), [])
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 53n],
        ['globex', 'ann', 53n],
      ])
    })

    it('is kept for another time at once when that is changed', async (t) => {
      const { db } = await emptied()
      await filled(db)
      const counter = new SqlUsageCounter(db)
      t.after(() => counter.close())
      await counter.counted()
      counter.keepFor(4 * MONTH_MS)
      await counter.counted()
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 2n],
        ['globex', 'ann', 2n],
      ])
    })

    it('is deleted by a process that lives for long, too, within an hour', async (t) => {
      const { db } = await emptied()
      const after = setTimeout
      const inTime = (ms?: number) => (ms === 3_600_000 ? 5 : ms)
      const soon = (run: () => void, ms?: number) => after(run, inTime(ms))
      t.mock.method(globalThis, 'setTimeout', soon as typeof setTimeout)
      const counter = new SqlUsageCounter(db)
      t.after(() => counter.close())
      await counter.counted()
      await filled(db)
      await untilAsync(async () => (await byUser(db)).every((row) => `${row}`.endsWith(',ann,26')))
      await counter.close()
    })

    it('is deleted also while a call cannot be counted', async (t) => {
      const { db } = await emptied()
      const ledger = await filled(db)
      await sql`insert into calls (id, account, status, created_at, entry) values ('req_0', 'acme', 200, 1, '{')`.execute(
        db,
      )
      await sql`insert into call_labels (label, id) values ('uncounted', 'req_0')`.execute(db)
      assert.deepEqual(await run(t, db, 4 * MONTH_MS), ['usage: calls could not be counted'])
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 2n],
        ['globex', 'ann', 2n],
      ])
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('and all other usage of calls that were logged while it was locked is counted once', async (t) => {
      const { db } = await emptied()
      const refusal = { status: 429, outcome: 'refused', error_code: 'rate_limited' } as const
      const at = Date.now() - 3 * 86_400_000
      const entries = Array.from({ length: REFUSED }, (_, i) =>
        entryAt(at + i, { account: i % 2 === 0 ? 'acme' : 'globex', key: 'k', user: 'ann', ...refusal }),
      )
      await new SqlCallStore(db).append(entries)
      const all = { from: 0, to: Date.now() + MONTH_MS, limit: 1000 } as const
      const state = async () => ({
        usage: await new SqlUsageStore(db).read({ ...all, groupBy: ['account', 'key', 'user', 'day'] }),
        labels: await db.selectFrom('call_labels').selectAll().orderBy('label').orderBy('id').execute(),
      })
      const expected = await state()
      assert.ok(expected.usage.length >= 2 && expected.labels.length > REFUSED)
      await sql`delete from usage`.execute(db)
      await sql`insert into call_labels (label, id) select 'uncounted', id from calls`.execute(db)
      // Several processes count at the same time.
      assert.deepEqual(await Promise.all([run(t, db), run(t, db)]), [[], []])
      assert.deepEqual(await state(), expected)
      assert.deepEqual(await run(t, db), [])
      assert.deepEqual(await state(), expected)
    })
  })
}
