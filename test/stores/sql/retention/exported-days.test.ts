import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { NOT_KNOWN } from '../../../../lib/core/usage/index.ts'
import { type Archive, FolderArchive, SqlCallStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, voidOf } from '../../../contracts/ledger-money.ts'
import { temporaryFolder } from '../../../support/gateway-process.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { DAY_MS, linesIn, MONTH_MS, NOW, nameOf, opened, retentionOf } from '../support/retention-world.ts'

/** The beginning of the day that is so many days ago. */
const dayAgo = (days: number) => Math.floor(NOW / DAY_MS - days) * DAY_MS

for (const { name, url, skip } of BACKENDS) {
  describe(`an export from ${name}`, { skip }, () => {
    it('has all that a charge is known by, and when it was undone', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t))
      const at = dayAgo(200)
      const ledger = new SqlLedger(db)
      const full = charge('acme', 1_500_000_001n, {
        requestId: newRequestId(at),
        key: 'k',
        at: at + 5,
        cost: 3n,
        usage: { ...NOT_KNOWN, user: 'ann', tags: { team: 'search' }, inputTokens: 7 },
      })
      const bare = charge('globex', 0n, { requestId: newRequestId(at + 1), at: at + 6 })
      await ledger.settle([full, bare])
      await ledger.settle([voidOf(full, { at: at + 9, entry: null })])
      const archive = new FolderArchive(folder.path)
      await retentionOf(t, db, { calls: null, charges: 3 * MONTH_MS, archive }).run()
      const lines = await linesIn(folder.path, nameOf('charges', at))
      assert.deepEqual(
        lines.map(({ basis: _, usage: __, ...line }) => line),
        [
          {
            request_id: full.requestId,
            account: 'acme',
            key: 'k',
            amount: '1.500000001',
            cost: '0.000000003',
            at: new Date(at + 5).toISOString(),
            voided_at: new Date(at + 9).toISOString(),
          },
          {
            request_id: bare.requestId,
            account: 'globex',
            key: null,
            amount: '0',
            cost: null,
            at: new Date(at + 6).toISOString(),
            voided_at: null,
          },
        ],
      )
      assert.partialDeepStrictEqual(lines, [
        { usage: { user: 'ann', tags: { team: 'search' }, inputTokens: 7 } },
      ])
    })

    it('is all that is deleted where some ids contain no time, and those charges stay', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t))
      const at = dayAgo(200) + DAY_MS / 2
      const own = [newRequestId(at), newRequestId(at + DAY_MS)]
      const among = `${newRequestId(at).slice(0, 13)}-`
      const others = ['order-17', 'req_', 'req_0001', 'req_1']
      const ledger = new SqlLedger(db)
      for (const requestId of [...others, among, ...own])
        await ledger.settle([
          charge(requestId.startsWith('req_0') ? 'acme' : 'globex', 7n, { requestId, at }),
        ])
      const archive = new FolderArchive(folder.path)
      const retention = retentionOf(t, db, { calls: null, charges: 3 * MONTH_MS, archive })
      for (let runs = 0; runs < 2; runs++) {
        await retention.run()
        const days = [at, at + DAY_MS].map((day) => linesIn(folder.path, nameOf('charges', day)))
        const lines = (await Promise.all(days)).flat()
        assert.deepEqual(
          lines.map(({ request_id: id }) => id),
          [among, ...own],
        )
        const left = await db.selectFrom('charges').select('request_id').orderBy('request_id').execute()
        assert.deepEqual(
          left.map(({ request_id: id }) => id),
          others,
        )
        assert.deepEqual((await ledger.check()).violations, [])
      }
    })

    it('are the days that are over for two days, and each row is of the day that its call began', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t))
      const times = [
        dayAgo(9) - 1,
        dayAgo(9),
        dayAgo(8) - 1,
        dayAgo(4),
        dayAgo(3) - 1,
        dayAgo(2),
        dayAgo(2) + 1,
        NOW - DAY_MS,
      ]
      const entries = times.map((time) => entryAt(time))
      const store = new SqlCallStore(db)
      await store.append(entries)
      const written: string[] = []
      const archive = new FolderArchive(folder.path)
      const noted: Archive = {
        write(...given) {
          written.push(given[0])
          return archive.write(...given)
        },
      }
      const retention = retentionOf(t, db, { calls: 3_600_000, archive: noted })
      for (let runs = 0; runs < 2; runs++) {
        await retention.run()
        assert.deepEqual(
          written,
          [10, 9, 4].map((days) => nameOf('calls', dayAgo(days))),
        )
        const left = (await store.list({ limit: 100 })).entries.map(({ id }) => id)
        assert.deepEqual(
          left.sort(),
          entries.slice(5).map(({ id }) => id),
        )
      }
      const [middle] = [await linesIn(folder.path, nameOf('calls', dayAgo(9)))]
      assert.deepEqual(middle, [entries[1], entries[2]])
    })

    it('is what has expired to the end of a day, where rows are kept for longer', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t))
      const entries = [dayAgo(10), dayAgo(9) - 1, dayAgo(9), dayAgo(8)].map((time) => entryAt(time))
      const store = new SqlCallStore(db)
      await store.append(entries)
      // A day that ends at the present less what is kept is over.
      const keptFor = (ms: number) =>
        retentionOf(t, db, { calls: NOW - dayAgo(9) + ms, archive: new FolderArchive(folder.path) }).run()
      const ids = async () => (await store.list({ limit: 9 })).entries.map(({ id }) => id).sort()
      assert.equal((await keptFor(1)).deleted.calls, 0)
      assert.equal((await ids()).length, 4)
      await keptFor(0)
      assert.deepEqual(
        await ids(),
        entries.slice(2).map(({ id }) => id),
      )
      assert.deepEqual(await linesIn(folder.path, nameOf('calls', dayAgo(10))), entries.slice(0, 2))
    })
  })
}
