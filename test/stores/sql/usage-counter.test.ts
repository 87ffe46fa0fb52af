import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { NOT_KNOWN } from '../../../lib/core/usage/index.ts'
import {
  type Database,
  SqlCallStore,
  SqlLedger,
  SqlUsageCounter,
  SqlUsageStore,
} from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { charge } from '../../contracts/ledger-money.ts'
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
  })
}
