import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, SqlLedger, SqlTaskStore } from '../../../../lib/stores/sql/index.ts'
import { assertSound, figures } from '../../../contracts/ledger-money.ts'
import { intentOf } from '../../../contracts/task-samples.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { PATIENT } from '../support/temporary-database.ts'

for (const { name, skip, url: databaseUrl } of BACKENDS) {
  describe(`an intent whose commit takes longer than anybody waits for, on ${name}`, { skip }, () => {
    it('is withdrawn all the same: its money does not stay held for what was never sent', async (t) => {
      const url = await databaseUrl(t)
      const handles = [await openDatabase(url, PATIENT), await openDatabase(url, PATIENT)] as const
      const [one, other] = handles
      t.after(() => Promise.all(handles.map((db) => db.destroy())))
      const [ledger, store] = [new SqlLedger(other), new SqlTaskStore(other)]
      await ledger.deposit('acme', 1000n, 'opening', 1)
      const intent = intentOf({ account: 'acme', key: 'none' }, { key: null })

      let intending: Promise<unknown> | undefined
      let withdrawing: Promise<void> | undefined
      await one.transaction().execute(async (trx) => {
        // The intent needs this wallet, and waits.
        await trx.updateTable('wallets').set({ overrun: 0n }).where('id', '=', 'account:acme').execute()
        intending = store.intend(intent)
        await sleep(100)
        withdrawing = store.withdraw(intent.id)
        // By then it is under way, and can do nothing but wait; were it not to wait, it would find nothing.
        await sleep(300)
      })
      assert.deepEqual(await intending?.then((intended) => (intended as { kind: string }).kind), 'held')
      await withdrawing
      assert.equal(await store.find('acme', intent.id), undefined)
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 0n, 0n])
      await store.withdraw(intent.id)
      assert.equal(await store.count({}), 0, 'nothing stands in for it')
      await assertSound(ledger)
    })

    it('holds nothing where it comes in the middle of its withdrawal', async (t) => {
      const url = await databaseUrl(t)
      const handles = [await openDatabase(url, PATIENT), await openDatabase(url, PATIENT)] as const
      const [one, other] = handles
      t.after(() => Promise.all(handles.map((db) => db.destroy())))
      const [ledger, store] = [new SqlLedger(other), new SqlTaskStore(other)]
      await ledger.deposit('acme', 1000n, 'opening', 1)
      const intent = intentOf({ account: 'acme', key: 'none' }, { key: null })
      const done: Promise<unknown>[] = []
      await one.transaction().execute(async (trx) => {
        // The withdrawal changes this record, and waits, behind the place that it holds; the intent waits for that.
        const record = { id: `withdrawn ${intent.id}`, owner: '', fingerprint: '', expires_at: 1n }
        await trx
          .insertInto('idempotency')
          .values({ ...record, state: 'completed' })
          .execute()
        done.push(store.withdraw(intent.id))
        await sleep(100)
        done.push(assert.rejects(store.intend(intent), { name: 'RowsHaveChanged' }))
        await sleep(100)
      })
      await Promise.all(done)
      assert.equal(await store.count({}), 0)
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 0n, 0n])
      await assertSound(ledger)
    })

    it('holds nothing where it comes after its withdrawal', async (t) => {
      const db = await openDatabase(await databaseUrl(t))
      t.after(() => db.destroy())
      const [ledger, store] = [new SqlLedger(db), new SqlTaskStore(db)]
      await ledger.deposit('acme', 1000n, 'opening', 1)
      const intent = intentOf({ account: 'acme', key: 'none' }, { key: null })
      await store.withdraw(intent.id)
      await store.withdraw(intent.id)
      await assert.rejects(store.intend(intent), { name: 'RowsHaveChanged' })
      assert.equal(await store.count({}), 0)
      assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 0n, 0n])
      await assertSound(ledger)
    })
  })
}
