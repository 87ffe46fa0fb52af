import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { firstIdOf, timeOfId } from '../../../lib/stores/sql/driver/id-times.ts'
import {
  makePartitions,
  nextPeriod,
  PARTITIONED_TABLES,
  partitionsOf,
  periodStart,
} from '../../../lib/stores/sql/driver/postgres/partitions.ts'
import { type Database, SqlCallStore, SqlLedger, undoMigrations } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { charge } from '../../contracts/ledger-money.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { olderDatabase } from './older-database.ts'
import { emptyPostgresUrl, postgresUrl } from './postgres-database.ts'
import { open } from './temporary-database.ts'

const DAY_MS = 86_400_000
const NOW = Date.now()

async function opened(t: TestContext): Promise<Database> {
  return open(t, await postgresUrl())
}

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
  it('tells its time', () => {
    for (const time of [0, NOW, 32 ** 10 - 1]) assert.equal(timeOfId(newRequestId(time)), time)
    for (const id of ['', 'req_', 'req_1', 'resp_01m82v7m00', 'req_01m82v7mu0'])
      assert.equal(timeOfId(id), undefined)
  })
})

describe('the tables of a new database in Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('have partitions for the time to come, without a gap', async (t) => {
    const db = await opened(t)
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
    const db = await opened(t)
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
    const db = await opened(t)
    const logger = recordingLogger()
    const later = NOW + 400 * DAY_MS
    const made = await Promise.all([1, 2, 3].map(() => makePartitions(db, later, logger)))
    const names = made.flat().sort()
    assert.deepEqual(names, [...new Set(names)])
    assert.ok(names.includes(`charges_${dated(periodStart(later, 'month'))}`))
    assert.deepEqual(await makePartitions(db, later, logger), [])
    assert.ok((await placesOf(db, await settled(db, later)))[0]?.match(/^charges_\d{8}$/))
  })

  it('take what is in none of them, charge it once, and give that time no partition any more', async (t) => {
    const db = await opened(t)
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

  it('hold up no settlement while somebody reads all of a table', async (t) => {
    const db = await opened(t)
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
})

describe('the tables of an older database in Postgres', { skip: WITHOUT_POSTGRES }, () => {
  const BEFORE = '0025-webhook-positions'
  const OLD = [NOW - 400 * DAY_MS, NOW - DAY_MS, NOW]

  /** Writes charges and calls of two accounts, as the version before did. */
  async function write(older: Awaited<ReturnType<typeof olderDatabase>>, more: readonly string[] = []) {
    const ids = [...OLD.map((time) => newRequestId(time)), ...more]
    for (const [i, id] of ids.entries()) {
      const account = i === 1 ? 'globex' : 'acme'
      await sql`insert into charges (request_id, account, amount, at, usage)
        values (${id}, ${account}, 5, ${NOW}, '{}')`.execute(older)
      await sql`insert into calls (id, account, status, created_at, entry, counted)
        values (${id}, ${account}, 200, ${NOW}, ${JSON.stringify(entryAt(NOW, { id, account }))}, 1)`.execute(
        older,
      )
    }
    await older.destroy()
    return ids
  }

  for (const last of [BEFORE, '0026-partition-bounds', '0026-partition-checks'])
    it(`are whole after an update from ${last}, their rows in the first partition`, async (t) => {
      const url = await emptyPostgresUrl()
      const before = await write(await olderDatabase(url, BEFORE))
      const ids = [...before, ...(last === BEFORE ? [] : await write(await olderDatabase(url, last)))]
      const db = await open(t, url)
      for (const id of ids) assert.deepEqual(await placesOf(db, id), ['charges_first', 'calls_first'])
      const { entries: found } = await new SqlCallStore(db).list({ account: 'acme', limit: 20 })
      assert.deepEqual(
        found.map(({ id }) => id),
        ids
          .filter((_, i) => i % OLD.length !== 1)
          .sort()
          .reverse(),
      )
      assert.equal((await placesOf(db, await settled(db, NOW + 60 * DAY_MS))).length, 3)
      assert.deepEqual(
        await new SqlLedger(db).settle([charge('acme', 5n, { requestId: ids[0] as string })]),
        ['known'],
      )
    })

  it('keep a row with an id of another kind, and are as before when that is undone', async (t) => {
    const url = await emptyPostgresUrl()
    const ids = await write(await olderDatabase(url, BEFORE), ['of-an-own-handler', 'zz'])
    const db = await open(t, url)
    assert.deepEqual(await placesOf(db, 'zz'), ['charges_default', 'calls_default'])
    await settled(db, NOW)
    await undoMigrations(url, BEFORE)
    const { rows } = await sql<{ id: string }>`select request_id as id from charges order by 1`.execute(db)
    assert.deepEqual(rows.length, ids.length + 1)
    assert.equal((await partitionsOf(db, 'charges')).length, 0)
    const again = await open(t, url)
    assert.equal((await new SqlCallStore(again).find('zz'))?.id, 'zz')
    assert.ok((await partitionsOf(again, 'charges')).length >= 2)
  })
})
