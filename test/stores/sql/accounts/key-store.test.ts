import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashSecret } from '../../../../lib/middleware/authenticate/index.ts'
import {
  SqlAccountStore,
  SqlChangeLog,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  seedAccountsAndKeys,
} from '../../../../lib/stores/sql/index.ts'
import { originOf } from '../../../contracts/account-money.ts'
import { OPEN_KEY } from '../../../contracts/key-samples.ts'
import { keyStoreContract } from '../../../contracts/key-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const SEED = { accounts: [{ id: 'acme' }], keys: [{ id: 'k', account: 'acme', secret: 'sk-1', quota: '5' }] }

const SEED_KEY = { ...OPEN_KEY, account: 'acme', secretHash: 'h' }

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  keyStoreContract(
    name,
    async () => {
      const { db } = await emptied()
      return {
        keys: new SqlKeyStore(db),
        accounts: new SqlAccountStore(db),
        directory: new SqlKeyDirectory(db),
        ledger: new SqlLedger(db),
        changes: new SqlChangeLog(db),
        close: async () => {},
      }
    },
    skip,
  )

  describe(`keys of a config: ${name}`, { skip }, () => {
    it('are there, and one that was deleted does not come back', async () => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, SEED)
      const keys = new SqlKeyStore(db)
      assert.equal((await keys.find('k'))?.quota, 5_000_000_000n)
      await keys.delete('k', originOf())
      await seedAccountsAndKeys(db, SEED)
      assert.equal(await keys.find('k'), undefined)
      assert.equal(await new SqlKeyDirectory(db).find(hashSecret('sk-1')), undefined)
    })

    it('do not bring back a key that was made and deleted by an operator', async () => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, { ...SEED, keys: [] })
      const keys = new SqlKeyStore(db)
      await keys.create({ ...SEED_KEY, id: 'k' }, originOf())
      await keys.delete('k', originOf())
      await seedAccountsAndKeys(db, SEED)
      assert.equal(await keys.find('k'), undefined)
    })

    it('have the later of the times that two processes report as their last use, and never an earlier one than before', async () => {
      const { db, other } = await emptied()
      await seedAccountsAndKeys(db, {
        accounts: SEED.accounts,
        keys: ['a', 'b', 'c'].map((id) => ({ id, account: 'acme', secret: `sk-${id}` })),
      })
      const stores = [new SqlKeyStore(db), new SqlKeyStore(other)]
      const latest = new Map<string, number>()
      let done = false
      const seen = new Map<string, number>()
      const reader = (async () => {
        while (!done)
          for (const { id, lastUsedAt } of (await stores[0]?.list({ limit: 10 })) ?? []) {
            assert.ok((lastUsedAt ?? 0) >= (seen.get(id) ?? 0), `${id} goes back`)
            seen.set(id, lastUsedAt ?? 0)
          }
      })()
      for (let round = 0; round < 20; round++) {
        const writes = stores.map((store) => {
          // A process writes late what it noted early: rounds overlap.
          const uses = new Map(
            ['c', 'a', 'b'].map((id) => [id, 1000 + round + Math.floor(Math.random() * 10)]),
          )
          for (const [id, use] of uses) latest.set(id, Math.max(use, latest.get(id) ?? 0))
          return store.noteUses(uses)
        })
        await Promise.all([
          ...writes,
          stores[1]?.change('a', (key) => ({ ...key, note: `${round}` }), originOf()),
          stores[0]?.rotate('b', hashSecret(`sk-b-${round}`), originOf(), 1000),
        ])
      }
      done = true
      await reader
      for (const [id, use] of latest) assert.equal((await stores[1]?.find(id))?.lastUsedAt, use, id)
    })

    it('a change that cannot be recorded is not made', async () => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, SEED)
      const keys = new SqlKeyStore(db)
      const origin = originOf()
      const before = await keys.change('k', (settings) => ({ ...settings, enabled: false }), origin)
      // The row of this request is there already: writing another fails.
      await assert.rejects(keys.change('k', (settings) => ({ ...settings, quota: 1n }), origin))
      await assert.rejects(keys.rotate('k', hashSecret('sk-2'), origin))
      await assert.rejects(keys.delete('k', origin))
      await assert.rejects(keys.create({ ...SEED_KEY, id: 'other' }, origin))
      assert.deepEqual(await keys.list({ limit: 10 }), [before])
      const directory = new SqlKeyDirectory(db)
      assert.equal((await directory.find(hashSecret('sk-1')))?.id, 'k')
      assert.equal(await directory.find(hashSecret('sk-2')), undefined)
    })
  })
}
