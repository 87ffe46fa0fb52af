import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { keyWallet, type WalletId } from '../../../lib/ledger/index.ts'
import { SqlBudgetStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-money.ts'
import { charge, fresh } from '../../contracts/ledger-money.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { mirrored, openRegions, type Regions } from './region-world.ts'

let regions: Regions
const cleanUp = cleaningUp()
if (!WITHOUT_POSTGRES)
  before(async () => {
    regions = await openRegions(cleanUp)
  })

/** Runs `run` while somebody else has a wallet of the region locked. */
function whileLocked<T>(wallet: WalletId, run: () => Promise<T>): Promise<T> {
  return regions.us.transaction().execute(async (trx) => {
    await trx.selectFrom('wallets').select('id').where('id', '=', wallet).forUpdate().execute()
    return run()
  })
}

describe('shares of a region, of which somebody has locked one', { skip: WITHOUT_POSTGRES }, () => {
  it('are reported and filled but for that one, which follows when it is free', async () => {
    const [locked, other] = [await mirrored(regions), await mirrored(regions)]
    const here = locked.process()
    for (const { ACCOUNT } of [locked, other]) await here.demand(ACCOUNT, 10n, 10n)
    await new SqlLedger(regions.us).settle([charge(locked.account, 5n), charge(other.account, 5n)])
    const order = (wallet: WalletId, want: bigint) => ({ wallet, need: 0n, want, give: 0n })
    const orders = [order(locked.ACCOUNT, 20n), order(other.ACCOUNT, 20n)]
    await whileLocked(locked.ACCOUNT, () => here.exchange(orders))
    assert.deepEqual(await locked.figures(), { home: [1000n, 0n, 10n], region: [10n, 5n, 0n] })
    assert.deepEqual(await other.figures(), { home: [1000n, 5n, 25n], region: [30n, 5n, 0n] })
    await here.exchange(orders.slice(0, 1))
    assert.deepEqual(await locked.figures(), { home: [1000n, 5n, 25n], region: [30n, 5n, 0n] })
    await locked.assertSound()
  })

  it('get what calls of others wait for', async () => {
    const [locked, other] = [await mirrored(regions), await mirrored(regions)]
    const here = locked.process()
    const [none, ...some] = await whileLocked(locked.ACCOUNT, () =>
      Promise.all([
        ...[locked.ACCOUNT, other.KEY, locked.ACCOUNT, other.ACCOUNT].map((wallet) =>
          here.demand(wallet, 5n, 5n),
        ),
      ]),
    )
    assert.equal(none, undefined)
    assert.deepEqual(some.at(-1), { moved: 5n, elsewhere: 995n })
    await locked.assertSound()
  })

  it('that was locked when home had granted something arrives with the next exchange, once', async () => {
    const { process, figures, assertSound, atHome, ACCOUNT } = await mirrored(regions)
    const granted = Promise.withResolvers<void>()
    const applied = Promise.withResolvers<void>()
    const here = process({
      ping: () => atHome.ping(),
      async exchange(...asked) {
        const answers = await atHome.exchange(...asked)
        void whileLocked(ACCOUNT, async () => {
          granted.resolve()
          await applied.promise
        })
        await granted.promise
        return answers
      },
    })
    await here.demand(ACCOUNT, 5n, 5n)
    applied.resolve()
    assert.deepEqual(await figures(), { home: [1000n, 0n, 5n], region: [0n, 0n, 0n] })
    await process().exchange([{ wallet: ACCOUNT, need: 0n, want: 0n, give: 0n }])
    assert.deepEqual(await figures(), { home: [1000n, 0n, 5n], region: [5n, 0n, 0n] })
    await assertSound()
  })
})

describe('the use of shares, while somebody has locked the row of one', { skip: WITHOUT_POSTGRES }, () => {
  for (const [what, isFirst] of [
    ['first', true],
    ['last', false],
  ] as const)
    it(`is noted, and ends, but for that one, the ${what} of all; nobody’s call waits for it`, async () => {
      const both = [await mirrored(regions), await mirrored(regions)]
      both.sort((a, b) => (a.ACCOUNT < b.ACCOUNT === isFirst ? -1 : 1))
      const [locked, other] = both as [(typeof both)[0], (typeof both)[0]]
      const { shares, process } = other
      const wallets = both.map(({ ACCOUNT }) => ACCOUNT)
      const now = Date.now()
      const used = async (wallet: WalletId) => {
        const row = regions.us.selectFrom('shares').select(['used_at', 'in_use']).where('wallet', '=', wallet)
        const { used_at, in_use } = await row.executeTakeFirstOrThrow()
        return [Number(used_at) - now, in_use]
      }
      await shares.us.touch(wallets, now + 1000)
      await regions.us.transaction().execute(async (trx) => {
        await trx
          .selectFrom('shares')
          .select('wallet')
          .where('wallet', '=', locked.ACCOUNT)
          .forUpdate()
          .execute()
        const [left, supplied] = await Promise.all([
          shares.us.touch([...wallets, keyWallet(fresh('no-share'))], now + 2000),
          process().demand(other.ACCOUNT, 5n, 5n),
        ])
        assert.deepEqual([left, supplied], [[locked.ACCOUNT], { moved: 5n, elsewhere: 995n }])
        assert.deepEqual(await used(other.ACCOUNT), [2000, 1])
        await shares.us.rest(wallets, now + 2000)
        assert.deepEqual(await used(other.ACCOUNT), [2000, 1], 'it was used then')
        await shares.us.rest(wallets, now + 2001)
        assert.deepEqual(await used(other.ACCOUNT), [2000, 0])
      })
      assert.deepEqual(await used(locked.ACCOUNT), [1000, 1])
      assert.deepEqual(await shares.us.touch(wallets, now + 4000), [])
      assert.deepEqual(
        [await used(locked.ACCOUNT), await used(other.ACCOUNT)],
        [
          [4000, 1],
          [4000, 1],
        ],
      )
    })
})

describe('copies of a region, while somebody has locked rows of an account', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('of other accounts follow what changes at home: keys that are gone or disabled, and new budgets', async () => {
    const locked = await mirrored(regions, { quota: '0.000001' })
    const [gone, disabled] = [await mirrored(regions), await mirrored(regions)]
    const { home, us, mirrors } = locked
    const budgets = new SqlBudgetStore(home)
    const terms = { amount: 5n, hard: true, soft: [], period: 'total', timezone: 'UTC' } as const
    const budgetOf = async ({ account }: { account: string }) => {
      const scope = { account, key: null, user: null, tag: null }
      await budgets.create({ id: fresh('budget'), scope, createdAt: 1, ...terms }, originOf())
    }
    await new SqlLedger(home).setLimit(locked.KEY, { limited: false })
    await home.updateTable('accounts').set({ rpm: 7n }).where('id', '=', locked.account).execute()
    await home.deleteFrom('keys').where('id', '=', gone.key).execute()
    await home.updateTable('keys').set({ enabled: 0 }).where('id', '=', disabled.key).execute()
    for (const each of [locked, disabled]) await budgetOf(each)
    const ask = <T>(question: () => Promise<T>) => question()
    const refreshed = whileLocked(locked.KEY, () => mirrors.us.refresh('eu', ask))
    await assert.rejects(refreshed, { code: '55P03' })
    const keys = await us.selectFrom('keys').select(['id', 'enabled']).orderBy('id').execute()
    const known = new Map(keys.map(({ id, enabled }) => [id, enabled]))
    assert.deepEqual([known.get(gone.key), known.get(disabled.key)], [undefined, 0])
    const copied = async ({ account }: { account: string }) =>
      (await new SqlBudgetStore(us).list({ account, limit: 9 })).length
    assert.equal(await copied(disabled), 1)
    await mirrors.us.refresh('eu', ask)
    assert.equal(await copied(locked), 1)
    const copy = us.selectFrom('accounts').select('rpm').where('id', '=', locked.account)
    assert.deepEqual(await copy.executeTakeFirst(), { rpm: 7n })
  })
})
