import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { KeySeed } from '../../../../lib/middleware/authenticate/index.ts'
import { SqlLedger, seedAccountsAndKeys } from '../../../../lib/stores/sql/index.ts'
import { charge } from '../../../contracts/ledger-money.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const SEED: KeySeed = {
  accounts: [{ id: 'acme', balance: '25.000000001' }, { id: 'globex' }, { id: 'zero', balance: '0' }],
  keys: [
    { id: 'k1', account: 'acme', secret: 'sk-1', quota: '5' },
    { id: 'k2', account: 'globex', secret: 'sk-2' },
  ],
}
const WALLETS = ['account:acme', 'account:globex', 'account:zero', 'key:k1', 'key:k2'] as const

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`wallets of seeded accounts and keys in ${name}`, { skip }, () => {
    it('are limited where a balance or quota is given, and the balance is a deposit', async () => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, SEED)
      const ledger = new SqlLedger(db)
      const statements = await ledger.wallets(WALLETS)
      assert.deepEqual(
        statements.map(({ limited, funds }) => [limited, funds]),
        [
          [true, 25_000_000_001n],
          [false, 0n],
          [true, 0n],
          [true, 5_000_000_000n],
          [false, 0n],
        ],
      )
      assert.equal(await ledger.deposit('acme', 25_000_000_001n, 'opening', 1), 'known')
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('take over the money that came before them', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      await ledger.settle([charge('acme', 7n, { key: 'k1' }), charge('globex', 2n)])
      await ledger.deposit('acme', 3n, 'early', 1)
      await seedAccountsAndKeys(db, SEED)
      const statements = await ledger.wallets(WALLETS)
      assert.deepEqual(
        statements.map(({ limited, funds, spent }) => [limited, funds, spent]),
        [
          [true, 25_000_000_004n, 7n],
          [false, 0n, 2n],
          [true, 0n, 0n],
          [true, 5_000_000_000n, 7n],
          [false, 0n, 0n],
        ],
      )
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('stay as they are where the account was there already', async () => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, SEED)
      await db.deleteFrom('seeds').execute()
      const logger = { info() {}, warn() {}, error() {} }
      assert.deepEqual(await seedAccountsAndKeys(db, SEED, { logger }), { accounts: 0, keys: 0 })
      assert.equal((await new SqlLedger(db).wallets(['account:acme']))[0]?.funds, 25_000_000_001n)
    })
  })
}
