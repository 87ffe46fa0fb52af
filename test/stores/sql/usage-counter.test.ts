import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type CallLogEntry, newRequestId } from '../../../lib/core/call/index.ts'
import { NOT_KNOWN, usageOfEntry } from '../../../lib/core/usage/index.ts'
import type { Settlement } from '../../../lib/ledger/index.ts'
import {
  type Database,
  SqlCallStore,
  SqlLedger,
  SqlUsageCounter,
  SqlUsageStore,
} from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { charge, voidOf } from '../../contracts/ledger-money.ts'
import { untilAsync } from '../../support/until.ts'
import { BACKENDS } from './postgres-database.ts'
import { open } from './temporary-database.ts'

const MONTH_MS = 31 * 86_400_000
const monthsAgo = (months: number) => Date.now() - months * MONTH_MS

/** Runs the counter once; returns what it logs. */
async function run(t: TestContext, db: Database, fineRetentionMs?: number): Promise<string[]> {
  const logged: string[] = []
  const log = (_: object, message?: string) => void logged.push(message ?? '')
  const logger = { info: log, warn: log, error: log }
  const counter = new SqlUsageCounter(db, { logger, ...(fineRetentionMs && { fineRetentionMs }) })
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

const CHARGED = 230
const REFUSED = 205

/** Calls of two accounts: charged ones, of which some are undone, refused ones, a further part, and one that the log has lost. */
async function filledWithCalls(db: Database): Promise<void> {
  const start = Date.now() - 3 * 86_400_000
  const entryOf = (i: number, members: Partial<CallLogEntry>) =>
    entryAt(start + i * 1000, {
      account: i % 2 === 0 ? 'acme' : 'globex',
      key: 'k',
      user: i % 3 === 0 ? null : 'ann',
      tags: i % 5 === 0 ? { team: 'search' } : {},
      ...members,
    })
  const settlements = Array.from({ length: CHARGED }, (_, i) => {
    const billing = { charged: '1', reserved: '1' } as CallLogEntry['billing']
    const usage = { input_tokens: i, cached_input_tokens: 1, output_tokens: 2 * i } as CallLogEntry['usage']
    const entry = entryOf(i, { billing, usage, duration_ms: 10 * i })
    const members = { requestId: entry.id, key: 'k', at: start + i * 1000, cost: BigInt(i), entry }
    return charge(entry.account ?? '', BigInt(i + 1), { ...members, usage: usageOfEntry(entry) })
  })
  const [first] = settlements as [Settlement]
  const of = { key: 'k', at: start, cost: 1n }
  const lost = charge('acme', 7n, { ...of, requestId: newRequestId(start), usage: NOT_KNOWN })
  const part = { requestId: `${first.requestId}.1`, usage: { ...NOT_KNOWN, requests: 0 } }
  const ledger = new SqlLedger(db)
  await ledger.settle([...settlements, lost, charge('acme', 11n, { ...of, ...part })])
  await ledger.settle(settlements.filter((_, i) => i % 7 === 3).map((each) => voidOf(each, { entry: null })))
  const refusal = { status: 429, outcome: 'refused', error_code: 'rate_limited' } as const
  await new SqlCallStore(db).append(Array.from({ length: REFUSED }, (_, i) => entryOf(i, refusal)))
}

/** Returns what each account was charged, by user. */
async function byUser(db: Database): Promise<unknown[]> {
  const span = { from: 0, to: Date.now() + MONTH_MS, limit: 100 }
  const rows = await new SqlUsageStore(db).read({ ...span, groupBy: ['account', 'user'] })
  return rows.map(({ groups, sums }) => [...groups, sums.charged])
}

for (const { name, url, skip } of BACKENDS) {
  describe(`usage of users and tags in ${name}`, { skip }, () => {
    it('is kept for 25 months, or as long as is said, and all other usage for good', async (t) => {
      const db = await open(t, await url(t))
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
      const db = await open(t, await url(t))
      await filled(db)
      for (const time of [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER])
        assert.deepEqual(await run(t, db, time), [])
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 53n],
        ['globex', 'ann', 53n],
      ])
    })

    it('is kept for another time at once when that is changed', async (t) => {
      const db = await open(t, await url(t))
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
      const db = await open(t, await url(t))
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

    it('of what was there is counted to an end, however many calls are made meanwhile', async (t) => {
      const db = await open(t, await url(t))
      const calls = new SqlCallStore(db)
      await calls.append([entryAt(Date.now() - 1000)])
      const counting = { over: false }
      const counted = run(t, db).then((logged) => {
        counting.over = true
        return logged
      })
      let made = 0
      for (; !counting.over && made < 1000; made++) {
        await calls.append([entryAt(Date.now())])
        await sleep(2)
      }
      assert.ok(counting.over, `still counting after ${made} calls`)
      assert.deepEqual(await counted, [])
    })

    it('is deleted also while older calls cannot be counted', async (t) => {
      const db = await open(t, await url(t))
      const ledger = await filled(db)
      await sql`insert into calls (id, account, status, created_at, entry) values ('req_0', 'acme', 200, 1, '{')`.execute(
        db,
      )
      assert.deepEqual(await run(t, db, 4 * MONTH_MS), [
        'usage: older calls could not be counted',
        'usage: older calls could not be labelled',
      ])
      assert.deepEqual(await byUser(db), [
        ['acme', 'ann', 2n],
        ['globex', 'ann', 2n],
      ])
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('loses nothing for what was undone without a charge, or is taken away already', async (t) => {
      const db = await open(t, await url(t))
      const ledger = new SqlLedger(db)
      const members = { requestId: newRequestId(monthsAgo(2)), at: monthsAgo(2) }
      const [kept, undone] = [charge('acme', 5n, members), charge('acme', 7n, { at: monthsAgo(2) })]
      const never = charge('acme', 9n, { at: monthsAgo(2) })
      await ledger.settle([kept, undone])
      await ledger.settle([voidOf(undone, { entry: null }), voidOf(never, { entry: null })])
      await sql`update voids set counted = null where request_id = ${never.requestId}`.execute(db)
      for (let times = 0; times < 2; times++) {
        assert.deepEqual(await run(t, db), [])
        const { rows } = await sql`select 1 from voids where counted is null`.execute(db)
        assert.deepEqual(rows, [])
        const [all] = await new SqlUsageStore(db).read({ from: 0, to: Date.now(), limit: 9, groupBy: [] })
        assert.equal(all?.sums.charged, 5n)
        await sql`delete from usage_marks`.execute(db)
      }
    })

    it('and all other usage of before it was counted is counted once, as it would have been, and calls are found by it', async (t) => {
      const db = await open(t, await url(t))
      await filledWithCalls(db)
      const all = { from: 0, to: Date.now() + MONTH_MS, limit: 1000 } as const
      const state = async () => ({
        usage: await new SqlUsageStore(db).read({
          ...all,
          groupBy: ['account', 'key', 'model', 'line', 'user', 'tag:team', 'day'],
        }),
        labels: await db.selectFrom('call_labels').selectAll().orderBy('label').orderBy('id').execute(),
      })
      const expected = await state()
      assert.ok(expected.usage.length >= 8 && expected.labels.length > REFUSED)
      await sql`update charges set usage = null`.execute(db)
      await sql`update voids set counted = null`.execute(db)
      await sql`update calls set counted = null`.execute(db)
      await sql`delete from usage`.execute(db)
      await sql`delete from usage_marks`.execute(db)
      await sql`delete from call_labels`.execute(db)
      // Some were logged while their usage was locked.
      await sql`insert into call_labels (label, id) select 'uncounted', id from calls where status = 429`.execute(
        db,
      )
      for (let times = 0; times < 2; times++) {
        assert.deepEqual(await run(t, db), [])
        assert.deepEqual(await state(), expected)
        assert.deepEqual((await new SqlLedger(db).check()).violations, [])
      }
    })
  })
}
