import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, SqlLedger, SqlTaskStore } from '../../../lib/stores/sql/index.ts'
import { TaskCreates } from '../../../lib/stores/sql/tasks/sql-task-creates.ts'
import { TaskRows } from '../../../lib/stores/sql/tasks/sql-task-rows.ts'
import { assertSound, figures } from '../../contracts/ledger-money.ts'
import { intentOf } from '../../contracts/task-samples.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, skip, url: databaseUrl } of BACKENDS) {
  describe(`an intent whose commit takes longer than anybody waits for, on ${name}`, { skip }, () => {
    it('is withdrawn all the same: its money does not stay held for what was never sent', async (t) => {
      const url = await databaseUrl(t)
      const handles = [await openDatabase(url), await openDatabase(url)] as const
      const [one, other] = handles
      t.after(() => Promise.all(handles.map((db) => db.destroy())))
      const [ledger, store] = [new SqlLedger(other), new SqlTaskStore(other)]
      await ledger.deposit('acme', 1000n, 'opening', 1)
      const intent = intentOf({ account: 'acme', key: 'none' }, { key: null })

      const creates = new TaskCreates(new TaskRows(one))
      let withdrawing: Promise<void> | undefined
      await one.transaction().execute(async (trx) => {
        assert.equal((await creates.intend(trx, intent)).kind, 'held')
        withdrawing = store.withdraw(intent.id)
        // By then it is under way, and can do nothing but wait; were it not to wait, it would find nothing.
        await sleep(300)
      })
      await withdrawing
      assert.equal(await store.find('acme', intent.id), undefined)
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 0n, 0n])
      await store.withdraw(intent.id)
      assert.equal(await store.count({}), 0, 'nothing stands in for it')
      await assertSound(ledger)
    })
  })
}
