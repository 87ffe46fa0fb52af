import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type BudgetPeriod, Budgets, type WalletId } from '../../../lib/ledger/index.ts'
import { charge, take } from '../../contracts/ledger-money.ts'
import { created, intended, intentOf } from '../../contracts/task-samples.ts'
import { onEveryBackend } from '../admin-server.ts'

onEveryBackend('what budgets tell', (server) => {
  let made = 0
  const newProcess = () => {
    const budgets = new Budgets({ store: server().budgets })
    // It reads when it is asked to.
    budgets.close()
    return budgets
  }
  /** A budget of an account of its own, of 100 nano-units unless `terms` says otherwise, with its period. */
  const budgetOf = async (terms: object = {}) => {
    const account = `acme-${++made}`
    await server().ask('POST', '/admin/accounts', { id: account, prepaid: false })
    const body = { scope: { account }, amount: '0.0000001', period: 'month', soft: [0.5, 0.8], ...terms }
    const { id } = (await server().ask('POST', '/admin/budgets', body)).body
    const budgets = newProcess()
    await budgets.refresh()
    const [period] = budgets.matching({ account, key: null, user: null, tags: null }, Date.now())
    assert.ok(period)
    await server().ledger.change('p', [take(`lease-${id}`, period.wallet, 1n)])
    return {
      account,
      period,
      budgets,
      spend: (amount: bigint) =>
        server().ledger.settle([charge(account, amount, { budgets: [period.wallet] })]),
      patch: async (change: object) =>
        assert.equal((await server().ask('PATCH', `/admin/budgets/${id}`, change)).status, 200),
      told: async () =>
        (await server().told())
          .filter(({ subject }) => subject === `budget:${id}`)
          .map(({ type, data }) => `${type} ${data.share} of ${data.amount}: ${data.spent}`),
    }
  }
  const amount = (nanos: number) => (nanos / 1e9).toFixed(9)
  /** Refuses a call, and waits for the events that are written beside it. */
  const refuse = async (budgets: Budgets, period: BudgetPeriod, refused = 'insufficient_balance') => {
    budgets.refusal(refused, period)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const soundly = async () =>
    assert.deepEqual((await server().ask('GET', '/admin/ledger/check')).body.violations, [])

  it('is each share once, by the charges that reach it, and nothing beside', async () => {
    const beside = await budgetOf()
    const { spend, told } = await budgetOf()
    await spend(49n)
    assert.deepEqual(await told(), [])
    await spend(1n)
    await spend(1n)
    const half = 'budget.threshold 0.5 of 0.0000001: 0.00000005'
    assert.deepEqual(await told(), [half])
    await spend(49n)
    await spend(49n)
    assert.deepEqual(await told(), [
      half,
      'budget.threshold 0.8 of 0.0000001: 0.00000008',
      'budget.exhausted 1 of 0.0000001: 0.0000001',
    ])
    assert.deepEqual(await beside.told(), [])
    await soundly()
  })

  it('is that a call was refused, with what is spent, once', async () => {
    const { spend, told, period, budgets, patch } = await budgetOf()
    await spend(60n)
    const half = 'budget.threshold 0.5 of 0.0000001: 0.00000005'
    await refuse(budgets, period, 'quota_lease_exhausted')
    assert.deepEqual(await told(), [half], 'what others hold may come back')
    const exhausted = 'budget.exhausted 1 of 0.0000001: 0.00000006'
    // Each process notes it once.
    const other = newProcess()
    for (const each of [budgets, other, budgets]) await refuse(each, period)
    assert.deepEqual(await told(), [half, exhausted])
    await patch({ amount: amount(1000) })
    await refuse(other, { ...period })
    await spend(2000n)
    const shares = (await told()).map((event) => event.split(' of')[0]).sort()
    assert.deepEqual(shares, ['budget.exhausted 1', 'budget.threshold 0.5', 'budget.threshold 0.8'])
  })

  it('is what a lower amount makes of what is spent, and new shares, once', async () => {
    const { spend, told, patch } = await budgetOf({ hard: false })
    await spend(49n)
    await patch({ amount: amount(98) })
    const half = 'budget.threshold 0.5 of 0.000000098: 0.000000049'
    assert.deepEqual(await told(), [half])
    await patch({ soft: [0.25, 0.5] })
    const quarter = 'budget.threshold 0.25 of 0.000000098: 0.000000024'
    assert.deepEqual(await told(), [half, quarter])
    await patch({ amount: amount(40) })
    const exhausted = 'budget.exhausted 1 of 0.00000004: 0.00000004'
    assert.deepEqual(await told(), [half, quarter, exhausted])
    for (const nanos of [1000, 10]) await patch({ amount: amount(nanos), soft: [0.25, 0.5] })
    await spend(1n)
    assert.deepEqual(await told(), [half, quarter, exhausted])
  })

  it('is no more once it is deleted, though processes may not know yet', async () => {
    const { spend, told, period } = await budgetOf()
    assert.equal((await server().ask('DELETE', `/admin/budgets/${period.budget}`)).status, 200)
    await spend(200n)
    assert.deepEqual(await told(), [])
    await soundly()
  })

  it('is what the charge of a video reaches, as of any call', async () => {
    const { account, period, told } = await budgetOf()
    const store = server().videoTasks
    const intent = intentOf({ account, key: '' }, { key: null, budgets: [period] })
    await intended(store, intent)
    await store.created(intent.id, created(), Date.now())
    assert.deepEqual(await told(), [])
    await store.observe(intent.id, { state: 'succeeded' }, Date.now())
    assert.deepEqual(await told(), [
      'budget.threshold 0.5 of 0.0000001: 0.00000005',
      'budget.threshold 0.8 of 0.0000001: 0.00000008',
    ])
    const [wallet] = await server().ledger.wallets([period.wallet as WalletId])
    assert.deepEqual([wallet?.spent, wallet?.leased], [85n, 1n])
    await soundly()
  })
})
