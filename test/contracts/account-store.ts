import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { AccountSettings, AccountStore } from '../../lib/management/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { depositsContract } from './account-deposits.ts'
import { type AccountStoreUnderTest, byFirst, figuresOf, originOf, PREPAID } from './account-money.ts'

export { originOf } from './account-money.ts'

/** The contract of every store of accounts. */
export function accountStoreContract(
  name: string,
  open: () => Promise<AccountStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`account store: ${name}`, { skip }, () => {
    let opened: AccountStoreUnderTest
    let accounts: AccountStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      accounts = opened.accounts
    })

    it('finds an account as it was created, with any characters in its texts', async () => {
      const settings: AccountSettings = {
        name: 'Åcme \u{1f9ea} "quoted"\u0000\n',
        prepaid: false,
        limits: { rpm: 600, tpm: 5_000_000_000, concurrency: 1 },
        regions: [],
        lineRegions: ['us', 'eu'],
        status: 'suspended',
      }
      const origin = originOf()
      const account = { ...settings, id: "a/b'c", createdAt: origin.at }
      assert.deepEqual(await accounts.create("a/b'c", settings, origin), account)
      assert.deepEqual(await accounts.find("a/b'c"), account)
      assert.equal(await accounts.find('a'), undefined)
      assert.equal(await accounts.find(''), undefined)
    })

    it('opens the wallet of a new account', async () => {
      assert.equal(await figuresOf(opened, 'new'), undefined)
      await accounts.create('new', PREPAID, originOf())
      assert.deepEqual(await figuresOf(opened, 'new'), { funds: 0n, spent: 0n, leased: 0n })
    })

    it('creates an account once for any number of concurrent requests', async () => {
      const asked = Array.from({ length: 20 }, (_, i) =>
        accounts.create('one', { ...PREPAID, name: `asker ${i}` }, originOf(`asker ${i}`)),
      )
      const made = (await Promise.all(asked)).filter((account) => account !== undefined)
      assert.equal(made.length, 1)
      assert.deepEqual(await accounts.find('one'), made[0])
      assert.deepEqual(
        (await opened.changes()).map(({ action, subject, actor }) => [action, subject, actor]),
        [['account.created', 'one', made[0]?.name]],
      )
    })

    it('lists accounts by the bytes of their ids, page by page', async () => {
      const ids = ['b', 'B', 'a-1', 'a1', 'A', 'a', 'Z~', '~']
      for (const id of ids) await accounts.create(id, PREPAID, originOf())
      const listed: string[] = []
      for (let after: string | undefined; ; after = listed.at(-1)) {
        const page = await accounts.list(3, after)
        listed.push(...page.map(({ id }) => id))
        if (page.length < 3) break
      }
      assert.deepEqual(listed, ids.toSorted())
      assert.deepEqual(
        (await accounts.list(100, 'a')).map(({ id }) => id),
        ['a-1', 'a1', 'b', '~'],
      )
    })

    it('changes an account, and records its state before and after', async () => {
      await accounts.create('acme', PREPAID, originOf())
      const origin = originOf('ada')
      const limits = { rpm: 5, tpm: null, concurrency: null }
      const changed = await accounts.change(
        'acme',
        (settings) => ({
          ...settings,
          ...{ name: 'Acme', prepaid: false, limits, regions: ['local'], status: 'suspended' },
        }),
        origin,
      )
      assert.deepEqual(changed, await accounts.find('acme'))
      assert.deepEqual(
        [
          changed?.name,
          changed?.prepaid,
          changed?.limits,
          changed?.regions,
          changed?.lineRegions,
          changed?.status,
        ],
        ['Acme', false, limits, ['local'], null, 'suspended'],
      )
      const none = { rpm: null, tpm: null, concurrency: null }
      assert.deepEqual((await opened.changes()).at(-1), {
        ...origin,
        action: 'account.changed',
        subject: 'acme',
        before: {
          name: null,
          status: 'active',
          prepaid: true,
          limits: none,
          regions: null,
          line_regions: null,
        },
        after: {
          ...{ name: 'Acme', status: 'suspended', prepaid: false },
          ...{ limits, regions: ['local'], line_regions: null },
        },
      })
    })

    it('records nothing if nothing is changed', async () => {
      const account = await accounts.create('acme', { ...PREPAID, regions: ['local'] }, originOf())
      const revise = (settings: AccountSettings) => ({ ...settings, regions: ['local'] })
      assert.deepEqual(await accounts.change('acme', revise, originOf()), account)
      assert.equal((await opened.changes()).length, 1)
    })

    it('changes no unknown account', async (t) => {
      const revise = t.mock.fn((settings: AccountSettings) => settings)
      assert.equal(await accounts.change('nobody', revise, originOf()), undefined)
      assert.equal(revise.mock.callCount(), 0)
      assert.deepEqual(await opened.changes(), [])
    })

    it('loses no concurrent change', async () => {
      await accounts.create('acme', { ...PREPAID, limits: { ...PREPAID.limits, rpm: 1 } }, originOf())
      const addOne = (settings: AccountSettings): AccountSettings => ({
        ...settings,
        limits: { ...settings.limits, rpm: (settings.limits.rpm ?? 0) + 1 },
      })
      await Promise.all(Array.from({ length: 20 }, () => accounts.change('acme', addOne, originOf())))
      assert.equal((await accounts.find('acme'))?.limits.rpm, 21)
      const recorded = (await opened.changes()).filter(({ action }) => action === 'account.changed')
      const rpmOf = (side: object | null) => (side as AccountSettings | null)?.limits.rpm
      assert.deepEqual(
        recorded.map(({ before, after }) => [rpmOf(before), rpmOf(after)]).sort(byFirst),
        Array.from({ length: 20 }, (_, i) => [i + 1, i + 2]),
      )
    })

    depositsContract(() => opened)
  })
}
