import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AccountSettings } from '../../../../lib/management/index.ts'
import { SqlAccountStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { accountStoreContract } from '../../../contracts/account-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { changesIn } from '../support/recorded-changes.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  accountStoreContract(
    name,
    async () => {
      const { db } = await emptied()
      const changes = () => changesIn(db)
      return { accounts: new SqlAccountStore(db), ledger: new SqlLedger(db), changes, close: async () => {} }
    },
    skip,
  )

  describe(`accounts of several processes: ${name}`, { skip }, () => {
    it('each change counts once, in whichever process it is made', async () => {
      const { db, ...handles } = await emptied()
      const [one, other] = [new SqlAccountStore(db), new SqlAccountStore(handles.other)]
      const both = [one, other, one, other, one, other]
      const made = await Promise.all(both.map((store) => store.create('acme', PREPAID, originOf())))
      assert.equal(made.filter(Boolean).length, 1)
      const addLetter = (settings: AccountSettings) => ({ ...settings, name: `${settings.name ?? ''}x` })
      await Promise.all(both.map((store) => store.change('acme', addLetter, originOf())))
      assert.equal((await one.find('acme'))?.name, 'xxxxxx')
      const outcomes = await Promise.all(both.map((store) => store.deposit('acme', 7n, 'r', originOf())))
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['deposited', ...Array(5).fill('known')])
      const actions = (await changesIn(db)).map(({ action }) => action)
      assert.deepEqual(actions.sort(), [
        ...Array(6).fill('account.changed'),
        'account.created',
        'account.deposited',
      ])
    })
  })

  describe(`a change that cannot be recorded is not made: ${name}`, { skip }, () => {
    it('no account, no change, no deposit', async () => {
      const { db } = await emptied()
      const accounts = new SqlAccountStore(db)
      const ledger = new SqlLedger(db)
      const origin = originOf()
      const account = await accounts.create('acme', PREPAID, origin)
      // The row of this request is there already: writing another fails.
      await assert.rejects(accounts.create('globex', PREPAID, origin))
      const rename = (settings: AccountSettings) => ({ ...settings, name: 'Acme', prepaid: false })
      await assert.rejects(accounts.change('acme', rename, origin))
      await assert.rejects(accounts.deposit('acme', 5n, 'r', origin))

      assert.deepEqual(await accounts.list(10), [account])
      const wallets = await ledger.wallets(['account:acme', 'account:globex'])
      assert.deepEqual(
        wallets.map(({ wallet, limited, funds }) => [wallet, limited, funds]),
        [['account:acme', true, 0n]],
      )
      assert.equal((await changesIn(db)).length, 1)
      assert.equal((await accounts.deposit('acme', 6n, 'r', originOf())).kind, 'deposited')
    })
  })
}
