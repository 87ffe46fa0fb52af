import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a call store in ${name}`, { skip }, () => {
    it('refuses options that it does not know, and a database that is none', async () => {
      const { db } = await emptied()
      assert.throws(() => new SqlCallStore(Promise.resolve(db) as never), /SqlCallStore: .* a database/)
      assert.throws(() => new SqlCallStore(db, { searches: url as never }), { name: 'TypeError' })
      assert.throws(() => new SqlCallStore(db, { search: db } as never), /search/)
    })

    it('appends a batch of which some entries and some labels are there already, each once', async () => {
      const { db } = await emptied()
      const store = new SqlCallStore(db)
      const [known, fresh, other] = [entryAt(NOW), entryAt(NOW + 1), entryAt(NOW + 2)]
      await store.append([known])
      await db.insertInto('call_labels').values({ label: 'key\nkey_acme', id: fresh.id }).execute()
      await store.append([{ ...known, status: 503 }, fresh, other, { ...other, status: 503 }])
      const found = (await store.list({ limit: 9, key: 'key_acme' })).entries
      assert.deepEqual(found, [other, fresh, known])
    })

    it('appends, and prunes, within the transaction of its caller, and not without it', async () => {
      const { db } = await emptied()
      const store = new SqlCallStore(db)
      const [old, young] = [entryAt(NOW), entryAt(NOW + 1000)]
      await store.append([old])
      const undone = db.transaction().execute(async (trx) => {
        assert.equal(await new SqlCallStore(trx).prune(NOW + 500, 5), 1)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
      await store.append([young])
      assert.deepEqual((await store.list({ limit: 9 })).entries, [young, old])
    })
  })
}
