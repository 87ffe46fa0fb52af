import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { type Archive, SqlCallStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { until, untilAsync } from '../../../support/until.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { DAY_MS, NOW, opened, retentionOf } from '../support/retention-world.ts'

for (const { name, url, skip } of BACKENDS) {
  describe(`rounds of retention in ${name}`, { skip }, () => {
    it('log once that they fail, and once that they work again', async (t) => {
      const db = await opened(t, await url(t))
      await new SqlCallStore(db).append([entryAt(NOW - 9 * DAY_MS)])
      const logger = recordingLogger()
      const world = { fails: true, tries: 0 }
      const archive: Archive = {
        async write(_, chunks, confirm) {
          world.tries++
          if (world.fails) throw new Error('the bucket is away')
          for await (const chunk of chunks) assert.ok(chunk.length > 0)
          await confirm()
        },
      }
      const retention = retentionOf(t, db, { logger, calls: 3 * DAY_MS, archive })
      assert.deepEqual([retention.away, retention.outages], [false, 0])
      await until(() => retention.away)
      retention.keepFor({ calls: 4 * DAY_MS, charges: null })
      await until(() => world.tries === 2)
      world.fails = false
      // Not before its round has ended.
      await retention.run()
      retention.keepFor({ calls: 5 * DAY_MS, charges: null })
      await until(() => !retention.away)
      assert.equal(retention.outages, 1)
      const logged = logger.lines.map(({ level, message }) => [level, message])
      assert.deepEqual(logged, [
        [
          'error',
          'retention: old rows could not be exported or deleted: none is lost; check the folder or bucket of retention.export',
        ],
        ['info', 'retention: old rows are deleted again'],
      ])
    })

    it('that fail without an archive name none', async (t) => {
      const db = await opened(t, await url(t))
      await sql`alter table calls rename to gone`.execute(db)
      const logger = recordingLogger()
      const retention = retentionOf(t, db, { logger, calls: DAY_MS })
      await until(() => retention.away)
      await sql`alter table gone rename to calls`.execute(db)
      assert.deepEqual(
        logger.lines.map(({ level, message }) => [level, message]),
        [['error', 'retention: old rows could not be exported or deleted']],
      )
    })

    it('keep rows for another time as soon as that is said, and for ever where it is', async (t) => {
      const db = await opened(t, await url(t))
      const store = new SqlCallStore(db)
      await store.append([9, 5, 1].map((days) => entryAt(NOW - days * DAY_MS)))
      const left = async () => (await store.list({ limit: 9 })).entries.length
      const retention = retentionOf(t, db, { calls: null, charges: null })
      assert.deepEqual((await retention.run()).deleted, { calls: 0, charges: 0 })
      assert.equal(await left(), 3)
      retention.keepFor({ calls: 7 * DAY_MS, charges: null })
      await untilAsync(async () => (await left()) === 2)
      retention.keepFor({ calls: 2 * DAY_MS, charges: null })
      await untilAsync(async () => (await left()) === 1)
      await retention.close()
      retention.keepFor({ calls: 1, charges: null })
      await assert.rejects(retention.run(), { name: 'UpkeepLost' })
      assert.equal(await left(), 1)
    })

    it('keep calls for thirty days, and charges for ever, where nothing is said', async (t) => {
      const db = await opened(t, await url(t))
      const ledger = new SqlLedger(db)
      const settlements = [29, 31].map((days) => {
        const [requestId, at] = [newRequestId(NOW - days * DAY_MS), NOW - days * DAY_MS]
        return charge('acme', 1n, { requestId, at, entry: entryAt(at, { id: requestId }) })
      })
      await ledger.settle(settlements)
      await retentionOf(t, db, {}).run()
      const { entries } = await new SqlCallStore(db).list({ limit: 9 })
      assert.deepEqual(
        entries.map(({ id }) => id),
        settlements.slice(0, 1).map(({ requestId }) => requestId),
      )
      assert.equal((await ledger.check()).charges, 2)
    })
  })
}
