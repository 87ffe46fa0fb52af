import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { firstIdOf, timeOfId } from '../../../../lib/stores/sql/driver/id-times.ts'
import {
  keepPartitions,
  makePartitions,
  nextPeriod,
  PARTITIONED_TABLES,
  partitionsOf,
  periodStart,
} from '../../../../lib/stores/sql/driver/postgres/partitions.ts'
import { type Database, SqlCallStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptyPostgresUrl, openPartitioned, postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const DAY_MS = 86_400_000
const NOW = Date.now()

async function settled(db: Database, time: number): Promise<string> {
  const requestId = newRequestId(time)
  const entry = entryAt(time, { id: requestId, client_request_id: 'of-a-caller' })
  await new SqlLedger(db).settle([charge('acme', 5n, { requestId, entry })])
  return requestId
}

/** The partitions in which the rows of a call are. */
async function placesOf(db: Database, id: string): Promise<string[]> {
  const { rows } = await sql<{ place: string }>`
    select tableoid::regclass::text as place from charges where request_id = ${id}
    union all select tableoid::regclass::text from calls where id = ${id}
    union all select distinct tableoid::regclass::text from call_labels where id = ${id}`.execute(db)
  return rows.map(({ place }) => place)
}

const dated = (start: number) => new Date(start).toISOString().slice(0, 10).replaceAll('-', '')

describe('a request id', () => {
  it('contains its time', () => {
    for (const time of [0, NOW, 32 ** 10 - 1]) assert.equal(timeOfId(newRequestId(time)), time)
    for (const id of ['', 'req_', 'req_1', 'resp_01m82v7m00', 'req_01m82v7mu0'])
      assert.equal(timeOfId(id), undefined)
  })
})

describe('the tables of a new database with the option `partitions`', { skip: WITHOUT_POSTGRES }, () => {
  it('have partitions for the time to come, without a gap', async (t) => {
    const db = await openPartitioned(t)
    for (const { name, width } of PARTITIONED_TABLES) {
      const parts = await partitionsOf(db, name)
      assert.equal(parts[0]?.from, null)
      for (const [i, part] of parts.entries()) if (i > 0) assert.equal(part.from, parts[i - 1]?.to)
      const ahead = width === 'month' ? 28 : 14
      assert.ok((parts.at(-1)?.to ?? '') > firstIdOf(NOW + ahead * DAY_MS), name)
      const start = periodStart(NOW, width)
      assert.ok(start <= NOW && nextPeriod(start, width) > NOW)
      assert.ok(parts.some((part) => part.name === `${name}_${dated(start)}`))
    }
    assert.equal(new Date(periodStart(NOW, 'week')).getUTCDay(), 1)
  })

  it('take a call into the partitions of its time, and find it there', async (t) => {
    const db = await openPartitioned(t)
    const id = await settled(db, NOW)
    const week = dated(periodStart(NOW, 'week'))
    assert.deepEqual(await placesOf(db, id), [
      `charges_${dated(periodStart(NOW, 'month'))}`,
      `calls_${week}`,
      `call_labels_${week}`,
    ])
    assert.equal((await new SqlCallStore(db).find(id))?.id, id)
  })

  it('get more as time goes on, made by one of several processes', async (t) => {
    const url = await emptyPostgresUrl()
    const [db, ...others] = [
      await openPartitioned(t, url),
      await openPartitioned(t, url),
      await openPartitioned(t, url),
    ]
    const logger = recordingLogger()
    const later = NOW + 400 * DAY_MS
    t.mock.timers.enable({ apis: ['Date'], now: later })
    await Promise.all([db, ...others].map((each) => keepPartitions(each, logger)))
    assert.deepEqual(logger.lines, [])
    const names = (await partitionsOf(db, 'charges')).map(({ name }) => name)
    assert.deepEqual(names, [...new Set(names)])
    assert.ok(names.includes(`charges_${dated(periodStart(later, 'month'))}`))
    assert.deepEqual(await makePartitions(db, later, logger), [])
    assert.ok((await placesOf(db, await settled(db, later)))[0]?.match(/^charges_\d{8}$/))
  })

  it('take what is in none of them, charge it once, and give that time no partition any more', async (t) => {
    const db = await openPartitioned(t)
    const far = NOW + 400 * DAY_MS
    const id = await settled(db, far)
    assert.deepEqual(await placesOf(db, id), ['charges_default', 'calls_default', 'call_labels_default'])
    const made = await makePartitions(db, far, recordingLogger())
    assert.ok(!made.includes(`calls_${dated(periodStart(far, 'week'))}`))
    assert.ok(made.includes(`calls_${dated(nextPeriod(periodStart(far, 'week'), 'week'))}`))
    const ledger = new SqlLedger(db)
    assert.deepEqual(await ledger.settle([charge('acme', 5n, { requestId: id })]), ['known'])
    const { violations, charges } = await ledger.check()
    assert.deepEqual([violations, charges], [[], 1])
  })

  it('hold up no settlement while another connection reads all of a table', async (t) => {
    const db = await openPartitioned(t)
    await db.transaction().execute(async (trx) => {
      await sql`select count(*) from charges`.execute(trx)
      await sql`select count(*) from calls`.execute(trx)
      const logger = recordingLogger()
      const making = makePartitions(db, NOW + 100 * DAY_MS, logger)
      await settled(db, NOW)
      const made = (await making).map((name) => name.replace(/_\d+$/, ''))
      assert.deepEqual([...new Set(made)], ['call_labels', 'answers'])
      assert.deepEqual(
        logger.lines.map(({ fields }) => fields.table),
        ['charges', 'calls'],
      )
    })
    assert.ok((await makePartitions(db, NOW + 100 * DAY_MS, recordingLogger())).length > 0)
  })

  it('are not divided without the option, which must be on when they are created', async (t) => {
    const url = await postgresUrl()
    const db = await open(t, url)
    const { rows } = await sql`select relname from pg_class
      where relkind = 'p' and relnamespace = 'public'::regnamespace`.execute(db)
    assert.deepEqual(rows, [])
    await assert.rejects(openPartitioned(t, url), /partitions must be on when the tables are created/)
    const other = await emptyPostgresUrl()
    await openPartitioned(t, other)
    const without = await open(t, other)
    const id = await settled(without, NOW + 400 * DAY_MS)
    assert.equal((await placesOf(without, id))[0], 'charges_default')
    assert.equal(await new SqlCallStore(without).prune(NOW + 500 * DAY_MS, 10), 1)
  })
})
