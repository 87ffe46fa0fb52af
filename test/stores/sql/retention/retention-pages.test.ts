import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { FolderArchive, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { temporaryFolder } from '../../../support/gateway-process.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { DAY_MS, linesIn, MONTH_MS, NOW, nameOf, opened, retentionOf } from '../support/retention-world.ts'

for (const { name, url, skip } of BACKENDS) {
  describe(`retention of many rows in ${name}`, { skip }, () => {
    it('exports and deletes more rows of a day than it reads at a time, each once', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await opened(t, await url(t))
      const time = Math.floor(NOW / DAY_MS - 200) * DAY_MS
      const ledger = new SqlLedger(db)
      const ids: string[] = []
      for (let batch = 0; batch < 6; batch++) {
        const settlements = Array.from({ length: 200 }, (_, i) => {
          const requestId = newRequestId(time + batch * 200 + i)
          ids.push(requestId)
          const account = i % 2 === 0 ? 'acme' : 'globex'
          const entry = entryAt(time + batch * 200 + i, { id: requestId, account })
          return charge(account, 1n, { requestId, at: time, entry })
        })
        await ledger.settle(settlements)
      }
      const before = await ledger.check()
      const times = { calls: 2 * MONTH_MS, charges: 3 * MONTH_MS }
      const { deleted } = await retentionOf(t, db, {
        ...times,
        archive: new FolderArchive(folder.path),
      }).run()
      assert.deepEqual(deleted, { calls: 1200, charges: 1200 })
      const [calls, charges] = [
        await linesIn(folder.path, nameOf('calls', time)),
        await linesIn(folder.path, nameOf('charges', time)),
      ]
      assert.deepEqual(
        calls.map(({ id }) => id),
        ids,
      )
      assert.deepEqual(
        charges.map(({ request_id: id }) => id),
        ids,
      )
      assert.deepEqual(await ledger.check(), before)
    })
  })
}
