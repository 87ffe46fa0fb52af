import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { keyWallet } from '../../../lib/ledger/index.ts'
import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import {
  SqlBudgetStore,
  SqlKeyDirectory,
  SqlLedger,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { RegionalKeys } from '../../../lib/stores/sql/regions/regional-keys.ts'
import { SqlHomeStore } from '../../../lib/stores/sql/regions/sql-home-store.ts'
import { SqlMirrors } from '../../../lib/stores/sql/regions/sql-mirrors.ts'
import { originOf } from '../../contracts/account-money.ts'
import { fresh } from '../../contracts/ledger-money.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { mirrored, openRegions, type Regions } from './region-world.ts'

let regions: Regions
const cleanUp = cleaningUp()
if (!WITHOUT_POSTGRES)
  before(async () => {
    regions = await openRegions(cleanUp)
  })

describe('copies of a region', { skip: WITHOUT_POSTGRES }, () => {
  const ask = <T>(question: () => Promise<T>) => question()

  it('follow what changes at home: limits, quotas, status, secrets, and that a key is gone', async () => {
    const { home, us, account, key, KEY, mirrors } = await mirrored(regions)
    await home.updateTable('accounts').set({ rpm: 7n, suspended: 1 }).where('id', '=', account).execute()
    await home
      .updateTable('keys')
      .set({ enabled: 0, secret_hash: `new ${key}` })
      .where('id', '=', key)
      .execute()
    await new SqlLedger(home).setLimit(KEY, { limited: true, quota: 5n })
    await mirrors.us.refresh('eu', ask)
    const copies = us.selectFrom('accounts').select(['rpm', 'suspended']).where('id', '=', account)
    assert.deepEqual(await copies.executeTakeFirst(), { rpm: 7n, suspended: 1 })
    const keys = us.selectFrom('keys').select(['enabled', 'secret_hash']).where('id', '=', key)
    assert.deepEqual(await keys.executeTakeFirst(), { enabled: 0, secret_hash: `new ${key}` })
    const [wallet] = await new SqlLedger(us).wallets([KEY])
    assert.deepEqual([wallet?.limited, wallet?.funds], [true, 0n])
    await home.deleteFrom('keys').where('id', '=', key).execute()
    await mirrors.us.refresh('eu', ask)
    assert.deepEqual(await keys.execute(), [])
  })

  it('are made of no account or key that this region has itself, nor of copies', async () => {
    const { us, atHome, account, key, secret, mirrors } = await mirrored(regions)
    await seedAccountsAndKeys(us, {
      accounts: [{ id: 'own', balance: '1' }],
      keys: [{ id: 'own-key', account: 'own', secret: 'sk-own' }],
    })
    const [found] = await atHome.keysById([key])
    assert.ok(found)
    const ofOwn = { account: { ...found.account, id: 'own', rpm: 1n }, key: { ...found.key, account: 'own' } }
    const ownRows = async () => [
      await us.selectFrom('accounts').selectAll().where('id', '=', 'own').execute(),
      await us.selectFrom('keys').selectAll().where('account', '=', 'own').execute(),
    ]
    const before = await ownRows()
    for (const key of [ofOwn.key, { ...ofOwn.key, id: 'far-key', secret_hash: 'far' }])
      assert.deepEqual(await mirrors.us.copy('eu', [{ ...found, ...ofOwn, key }]), [])
    assert.deepEqual(await ownRows(), before)
    assert.deepEqual(await mirrors.us.copy('asia', [found]), [])
    assert.deepEqual(await mirrors.us.copy('eu', [{ ...found, key: { ...found.key, id: 'own-key' } }]), [])
    const own = await us.selectFrom('keys').select('account').where('id', '=', 'own-key').executeTakeFirst()
    assert.equal(own?.account, 'own')
    assert.deepEqual(await new SqlHomeStore(us).keysBySecret([hashSecret(secret)]), [])
    assert.equal(await mirrors.us.homeOf(account), 'eu')
    assert.equal(await mirrors.us.homeOf('own'), undefined)
  })

  it('are gone where home gives their key a secret that a key of this region has; those of others follow', async () => {
    const [one, other] = [await mirrored(regions), await mirrored(regions)]
    const { home, us, mirrors } = one
    const [id, account] = [fresh('own-key'), fresh('own')]
    await seedAccountsAndKeys(us, { accounts: [{ id: account }], keys: [{ id, account, secret: id }] })
    const taken = hashSecret(id)
    await home.updateTable('keys').set({ secret_hash: taken }).where('id', '=', one.key).execute()
    await home.updateTable('keys').set({ enabled: 0 }).where('id', '=', other.key).execute()
    for (let round = 0; round < 2; round++) {
      await mirrors.us.refresh('eu', ask)
      const keys = us.selectFrom('keys').select(['id', 'secret_hash', 'enabled'])
      assert.deepEqual(
        await keys.where('id', '=', one.key).execute(),
        [],
        'its former secret is not valid here',
      )
      assert.equal((await keys.where('id', '=', other.key).executeTakeFirst())?.enabled, 0)
      assert.equal((await keys.where('secret_hash', '=', taken).executeTakeFirst())?.id, id)
    }
  })

  it('bring no budget of another account, whatever else home was asked for with them', async () => {
    const [one, other] = [await mirrored(regions), await mirrored(regions)]
    const { home, us, atHome, mirrors } = one
    const terms = { amount: 5n, hard: true, soft: [], period: 'day', timezone: 'UTC' } as const
    for (const { account } of [one, other]) {
      const scope = { account, key: null, user: null, tag: null }
      const budget = { id: `of ${account}`, scope, createdAt: 1, ...terms }
      assert.equal(await new SqlBudgetStore(home).create(budget, originOf()), 'created')
    }
    const accounts = [one.account, other.account]
    const budgets = await atHome.budgetsOf(accounts)
    assert.equal(budgets.length, 2)
    assert.equal((await mirrors.us.copy('eu', await atHome.keysById([one.key]), budgets)).length, 1)
    const copies = await us.selectFrom('budgets').select('id').where('account', 'in', accounts).execute()
    assert.deepEqual(copies, [{ id: `of ${one.account}` }])
  })

  it('bring the budgets of their accounts into each process before it uses them', async () => {
    const { home, asia, atHome, account, secret, mirrors, process } = await mirrored(regions)
    const [store, id] = [new SqlBudgetStore(home), fresh('budget')]
    const scope = { account, key: null, user: null, tag: null }
    const terms = { amount: 5n, hard: true, soft: [], period: 'day', timezone: 'UTC' } as const
    await store.create({ id, scope, createdAt: 1, ...terms }, originOf())
    const found = async () => {
      const known: string[][] = []
      const keys = new RegionalKeys({
        ...{ keys: new SqlKeyDirectory(asia), mirrors: mirrors.asia, onUse() {} },
        regions: [{ exchange: process(atHome, 'asia'), store: atHome }],
        async onCopy() {
          const budgets = await new SqlBudgetStore(asia).list({ account, limit: 9 })
          known.push(budgets.map((budget) => budget.id))
        },
      })
      assert.equal((await keys.find(hashSecret(secret)))?.account.id, account)
      assert.equal((await keys.find(hashSecret(secret)))?.account.id, account)
      return known
    }
    assert.deepEqual([await found(), await found()], [[[id]], [[id]]])
    await store.delete(id, originOf())
    assert.deepEqual(await found(), [[]])
  })

  it('of keys are forgotten when their home was away too long, which is told once, and made again by the next look-up', async () => {
    const { us, atHome, key } = await mirrored(regions)
    const logger = recordingLogger()
    const mirrors = new SqlMirrors(us, new Map([['eu', atHome]]), logger)
    await mirrors.expire('eu')
    assert.deepEqual(await us.selectFrom('keys').select('id').where('id', '=', key).execute(), [])
    assert.equal((await mirrors.copy('eu', await atHome.keysById([key]))).length, 1)
    logger.lines.length = 0
    for (let round = 0; round < 3; round++) await mirrors.expire('eu')
    assert.deepEqual(
      logger.lines.map(({ fields }) => fields),
      [{ home: 'eu', keys: 1 }],
    )
  })

  it('follow however many are in use: home is asked for some at a time, each within the time limit', async () => {
    const { home, us, key, KEY, mirrors } = await mirrored(regions)
    const ids = Array.from({ length: 1100 }, (_, i) => `${key}-${i}`)
    const share = await us
      .selectFrom('shares')
      .selectAll()
      .where('wallet', '=', KEY)
      .executeTakeFirstOrThrow()
    for (let i = 0; i < ids.length; i += 500) {
      const some = ids.slice(i, i + 500)
      for (const db of [home, us]) {
        const own = await db.selectFrom('keys').selectAll().where('id', '=', key).executeTakeFirstOrThrow()
        const rows = some.map((id) => ({ ...own, id, secret_hash: `secret of ${id}` }))
        await db.insertInto('keys').values(rows).execute()
      }
      const shares = some.map((id) => ({ ...share, wallet: keyWallet(id) }))
      await us.insertInto('shares').values(shares).execute()
    }
    const [gone, disabled] = [`${key}-3`, `${key}-1099`]
    await home.deleteFrom('keys').where('id', '=', gone).execute()
    await home.updateTable('keys').set({ enabled: 0 }).where('id', '=', disabled).execute()
    let most = 0
    await mirrors.us.refresh('eu', async (question) => {
      const answer = await question()
      most = Math.max(most, (answer as readonly unknown[]).length)
      return answer
    })
    const keys = us.selectFrom('keys').select(['id', 'enabled'])
    assert.deepEqual(await keys.where('id', 'in', [gone, disabled]).execute(), [{ id: disabled, enabled: 0 }])
    assert.equal((await keys.where('id', 'in', ids).execute()).length, ids.length - 1)
    assert.ok(most <= 500, `${most} keys within one time limit`)
  })
})
