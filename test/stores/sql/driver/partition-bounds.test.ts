import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { firstIdOf, timeOfId } from '../../../../lib/stores/sql/driver/id-times.ts'
import {
  nextPeriod,
  PARTITIONED_TABLES,
  partitionsOf,
  periodStart,
} from '../../../../lib/stores/sql/driver/postgres/partitions.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { olderDatabase } from '../older-database.ts'
import { emptyPostgresUrl } from '../postgres-database.ts'
import { open } from '../temporary-database.ts'

const DAY_MS = 86_400_000
const MONTH_AHEAD_MS = 31 * DAY_MS

describe('the bound of an older table in Postgres that becomes a partition', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('is the beginning of a period a month ahead, where its rows allow that, and there is none else', async (t) => {
    const url = await emptyPostgresUrl()
    const older = await olderDatabase(url, '0025-webhook-positions')
    const now = Date.now()
    const row = sql`insert into charges (request_id, account, amount, at, usage)
      values (${newRequestId(now)}, 'acme', 5, ${now}, '{}')`
    await row.execute(older)
    for (const [table, id] of [
      ['call_labels', newRequestId(now)],
      ['answers', newRequestId(now + 60 * DAY_MS)],
    ] as const) {
      const values = table === 'answers' ? sql`(${id}, 0, '')` : sql`('l', ${id})`
      await sql`insert into ${sql.table(table)} values ${values}`.execute(older)
    }
    await older.destroy()
    const between = await olderDatabase(url, '0026-partition-bounds')
    const { rows } = await sql<{ name: string; bound: string }>`
      select conname as name, pg_get_constraintdef(oid) as bound from pg_constraint
      where conname like '%\\_until' order by 1`.execute(between)
    await between.destroy()
    assert.deepEqual(
      rows.map(({ name }) => name),
      ['call_labels_until', 'charges_until'],
    )
    for (const { name, bound } of rows) {
      const time = timeOfId(/'(req_\w{10})'/.exec(bound)?.[1] ?? '') ?? 0
      const width = name === 'charges_until' ? 'month' : 'week'
      assert.equal(time, periodStart(time, width), name)
      const ahead = time - now
      // The migration asked for the time a moment later.
      const most = MONTH_AHEAD_MS + (width === 'week' ? 7 : 31) * DAY_MS + 60_000
      assert.ok(ahead >= MONTH_AHEAD_MS && ahead <= most, name)
    }
    const db = await open(t, url)
    const endsOf = async (name: 'calls' | 'answers') => timeOfId((await partitionsOf(db, name))[0]?.to ?? '')
    const weeks = [now, Date.now()].map((time) => periodStart(time, 'week'))
    assert.ok(weeks.includes((await endsOf('calls')) ?? 0), 'where an empty table has its first period')
    const ends = weeks.map((start) => nextPeriod(start, 'week'))
    assert.ok(ends.includes((await endsOf('answers')) ?? 0), 'behind the present period of one with rows')
    for (const { name, width } of PARTITIONED_TABLES) {
      const parts = await partitionsOf(db, name)
      const [first, ...others] = parts
      assert.deepEqual([first?.name, first?.from], [`${name}_first`, null])
      // Each begins where the one before it ends.
      for (const [i, { from, to }] of others.entries()) {
        assert.equal(from, parts[i]?.to)
        const start = timeOfId(from ?? '') ?? 0
        assert.equal(to, firstIdOf(nextPeriod(start, width)), `${name} ${i}`)
        assert.equal(start, periodStart(start, width))
      }
    }
  })
})
