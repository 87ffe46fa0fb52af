import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { accountWallet, keyWallet, type Settlement } from '../../../../lib/ledger/index.ts'
import { hasPartitions, makePartitions } from '../../../../lib/stores/sql/driver/postgres/partitions.ts'
import {
  type Archive,
  type Database,
  FolderArchive,
  openDatabase,
  SqlCallStore,
  SqlLedger,
  SqlRetention,
} from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { temporaryFolder } from '../../../support/gateway-process.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { until, untilAsync } from '../../../support/until.ts'
import { BACKENDS, emptyPostgresUrl } from '../support/postgres-database.ts'
import { DAY_MS, linesIn, MONTH_MS, NOW, nameOf, opened, retentionOf } from '../support/retention-world.ts'
import { open, PATIENT } from '../support/temporary-database.ts'

/** In days: in months that are wholly older than what is kept, and in one that is not. */
const AGES = [200, 130, 129, 1] as const

/** Settles calls of two accounts of each age, of which one of the first is undone. */
async function filled(db: Database): Promise<Settlement[]> {
  if (hasPartitions(db))
    for (const age of AGES) await makePartitions(db, NOW - age * DAY_MS, recordingLogger())
  const ledger = new SqlLedger(db)
  const settlements: Settlement[] = []
  for (const [i, age] of AGES.entries())
    for (const account of ['acme', 'globex']) {
      const requestId = newRequestId(NOW - age * DAY_MS)
      const entry = entryAt(NOW - age * DAY_MS, {
        id: requestId,
        account,
        client_request_id: `of-${account}`,
      })
      const key = account === 'acme' ? 'k' : null
      settlements.push(charge(account, BigInt(10 ** i), { requestId, key, at: NOW - age * DAY_MS, entry }))
    }
  await ledger.settle(settlements)
  const [undone] = settlements as [Settlement]
  await ledger.settle([{ ...undone, kind: 'void', entry: null }])
  return settlements
}

async function idsOf(db: Database, table: 'charges' | 'calls' | 'voids' | 'call_labels'): Promise<string[]> {
  const column = sql.ref(table === 'charges' || table === 'voids' ? 'request_id' : 'id')
  const { rows } = await sql<{
    id: string
  }>`select distinct ${column} as id from ${sql.table(table)} order by 1`.execute(db)
  return rows.map(({ id }) => id)
}

async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true })
  return found.filter((name) => name.includes('.')).sort()
}

const PARTITIONED = {
  name: 'Postgres with partitions',
  url: emptyPostgresUrl,
  skip: WITHOUT_POSTGRES,
  partitions: true,
}

for (const { name, url, skip, partitions } of [
  ...BACKENDS.map((backend) => ({ ...backend, partitions: false })),
  PARTITIONED,
]) {
  describe(`retention in ${name}`, { skip }, () => {
    it('deletes old charges and calls of two accounts, and the ledger check still finds no violation', async (t) => {
      const db = await opened(t, await url(t), partitions)
      const settlements = await filled(db)
      const ledger = new SqlLedger(db)
      const before = await ledger.check()
      assert.deepEqual([before.violations, before.charges], [[], 8])
      const wallets = await ledger.wallets([accountWallet('acme'), accountWallet('globex'), keyWallet('k')])
      const retention = retentionOf(t, db, { charges: 3 * MONTH_MS })
      const { dropped, elsewhere } = await retention.run()
      assert.equal(elsewhere, false)
      if (partitions) {
        assert.ok(
          dropped.some((part) => /^charges_\d{8}$/.test(part)),
          dropped.join(),
        )
        assert.ok(
          dropped.some((part) => /^call_labels_\d{8}$/.test(part)),
          dropped.join(),
        )
      }
      const young = settlements
        .slice(-2)
        .map(({ requestId }) => requestId)
        .sort()
      for (const table of ['charges', 'calls', 'call_labels'] as const)
        assert.deepEqual(await idsOf(db, table), young, table)
      assert.deepEqual(await idsOf(db, 'voids'), [])
      assert.deepEqual(await ledger.check(), before)
      assert.deepEqual(
        await ledger.wallets([accountWallet('acme'), accountWallet('globex'), keyWallet('k')]),
        wallets,
      )
      // Settlements that can still arrive are written once.
      assert.deepEqual(await ledger.settle(settlements.slice(-2)), ['known', 'known'])
      await ledger.settle([charge('acme', 7n)])
      await retention.run()
      const { violations, charges } = await ledger.check()
      assert.deepEqual([violations, charges], [[], 9])
      await sql`update carried_spending set amount = amount + 1 where wallet = 'key:k'`.execute(db)
      assert.match((await ledger.check()).violations.join(), /wallet "key:k"/)
    })

    it('deletes rows one by one where they are kept for hours, and of the time before there were partitions', async (t) => {
      const db = await opened(t, await url(t), partitions)
      const store = new SqlCallStore(db)
      const times = [NOW - 3000 * DAY_MS, NOW - 2 * 3_600_000, NOW - 3_500_000]
      await store.append(times.map((time) => entryAt(time)))
      const retention = retentionOf(t, db, { calls: 3_600_000 })
      assert.deepEqual((await retention.run()).deleted, { calls: 2, charges: 0 })
      assert.equal((await store.list({ limit: 5 })).entries.length, 1)
    })

    it('exports each day once, before its rows are deleted, and deletes nothing while that fails', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t), partitions)
      const settlements = await filled(db)
      const broken: Archive = {
        async write(_name, chunks) {
          for await (const _ of chunks) throw new Error('the bucket is away')
        },
      }
      const times = { calls: 2 * MONTH_MS, charges: 3 * MONTH_MS }
      await assert.rejects(retentionOf(t, db, { ...times, archive: broken }).run(), /the bucket is away/)
      assert.deepEqual([(await idsOf(db, 'calls')).length, (await idsOf(db, 'charges')).length], [8, 8])

      const archive = new FolderArchive(folder.path)
      // As from a process that was killed in the middle.
      let written = 0
      const dying: Archive = {
        write: (...given) => (++written === 2 ? broken.write(...given) : archive.write(...given)),
      }
      await assert.rejects(retentionOf(t, db, { ...times, archive: dying }).run(), /away/)
      const retention = retentionOf(t, db, { ...times, archive })
      await retention.run()
      await retention.run()
      const days = [200, 130, 129].map((age) => NOW - age * DAY_MS)
      const expected = ['calls', 'charges'].flatMap((table) => days.map((day) => nameOf(table, day)))
      assert.deepEqual(await filesIn(folder.path), expected)
      const [charges, calls] = [
        await linesIn(folder.path, nameOf('charges', days[0] as number)),
        await linesIn(folder.path, nameOf('calls', days[0] as number)),
      ]
      const first = settlements.slice(0, 2).map(({ requestId }) => requestId)
      assert.deepEqual(calls.map(({ id }) => id).sort(), first.sort())
      assert.deepEqual(
        charges.map(({ request_id: id }) => id),
        calls.map(({ id }) => id),
      )
      assert.equal(charges.filter(({ voided_at: at }) => at !== null).length, 1)
      assert.deepEqual(charges.find(({ account }) => account === 'globex')?.amount, '0.000000001')
      assert.equal((await idsOf(db, 'calls')).length, 2)
      assert.deepEqual((await new SqlLedger(db).check()).violations, [])
    })

    it('is done by one of several processes at a time, and is known to fail while it does', async (t) => {
      const db = await opened(t, await url(t), partitions)
      await filled(db)
      const { promise: going, resolve: goOn } = Promise.withResolvers<void>()
      const { promise: begun, resolve: began } = Promise.withResolvers<void>()
      const slow: Archive = {
        async write() {
          began()
          await going
          throw new Error('the disk is full')
        },
      }
      const holder = retentionOf(t, db, { archive: slow })
      const first = holder.run()
      await begun
      const other = retentionOf(t, db, {})
      assert.equal((await other.run()).elsewhere, true)
      await other.close()
      assert.equal((await idsOf(db, 'calls')).length, 8)
      goOn()
      await assert.rejects(first, /the disk is full/)
      // Its own rounds would get the turn again.
      await holder.close()
      const logger = recordingLogger()
      const failing = retentionOf(t, db, { logger, archive: slow })
      await until(() => failing.away)
      assert.equal(failing.outages, 1)
      assert.match(JSON.stringify(logger.lines), /retention.export/)
    })

    it('begins soon after a start, for processes that live for some seconds', async (t) => {
      const database = await url(t)
      const db = await opened(t, database, partitions)
      await filled(db)
      const own = await openDatabase(database, { ...PATIENT, partitions })
      const retention = new SqlRetention(own, { logger: recordingLogger() })
      await untilAsync(async () => (await idsOf(db, 'calls')).length === 2)
      await retention.close()
      await own.destroy()
      assert.equal((await idsOf(db, 'charges')).length, 8)
    })
  })
}

it('charges are kept for a month at least', async (t) => {
  const db = await open(t, (await BACKENDS[0]?.url(t)) ?? '')
  assert.throws(() => new SqlRetention(db, { charges: MONTH_MS - 1 }), /at least 31 days/)
})
