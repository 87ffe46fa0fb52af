import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatAmount, parseAmount } from '../../../lib/core/catalog/index.ts'
import { adminRoutes } from '../../../lib/management/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { onEveryBackend, sqlStores } from '../admin-server.ts'

onEveryBackend('the ledger over the admin API', (server) => {
  const take = async (lease: string, want: string, account = 'acme'): Promise<string> => {
    const change = { kind: 'take', need: 1n, want: parseAmount(want) } as const
    const [answer] = await server().ledger.change('process-1', [
      { lease, wallet: `account:${account}`, seq: 1, change },
    ])
    return formatAmount(answer?.moved ?? 0n)
  }
  const acme = async () => {
    const { deposited, spent, balance, leased, available } = (
      await server().ask('GET', '/admin/accounts/acme')
    ).body
    return { deposited, spent, balance, leased, available }
  }
  const check = async () => (await server().ask('GET', '/admin/ledger/check')).body

  it('shows what processes hold of an account, and what was spent, in books that are right', async () => {
    const { ask, ledger } = server()
    assert.deepEqual((await ask('GET', '/admin/leases')).body, {
      object: 'list',
      data: [],
      next_cursor: null,
    })
    const sums = { accounts: 2, deposited: '25' }
    const sound = { object: 'ledger_check', violations: [], ...sums }
    assert.deepEqual(await check(), { ...sound, charges: 0, spent: '0', leased: '0' })

    assert.equal(await take('lease-b', '2'), '2')
    assert.equal(await take('lease-c', '5'), '2.3', 'a tenth of what is available')
    assert.equal(await take('lease-a', '0.5'), '0.5')
    assert.deepEqual(await acme(), {
      deposited: '25',
      spent: '0',
      balance: '25',
      leased: '4.8',
      available: '20.2',
    })
    assert.deepEqual(await check(), { ...sound, charges: 0, spent: '0', leased: '4.8' })

    const results = await ledger.settle([
      {
        kind: 'charge',
        requestId: 'req_00000000000000000000000001',
        account: 'acme',
        key: 'key_acme',
        amount: parseAmount('1.25'),
        at: Date.now(),
        draws: [{ lease: 'lease-b', wallet: 'account:acme', amount: parseAmount('1.25') }],
        basis: '{}',
        claim: null,
        entry: null,
      },
    ])
    assert.deepEqual(results, ['written'])
    assert.deepEqual(await acme(), {
      deposited: '25',
      spent: '1.25',
      balance: '23.75',
      leased: '3.55',
      available: '20.2',
    })
    assert.deepEqual(await check(), { ...sound, charges: 1, spent: '1.25', leased: '3.55' })

    const whole = (await ask('GET', '/admin/leases')).body
    const lease = { object: 'lease', wallet: 'account:acme', owner: 'process-1' }
    assert.deepEqual(
      whole.data.map(({ renewed_at, ...rest }) => {
        assert.ok(Math.abs(Date.parse(renewed_at) - Date.now()) < 60_000)
        return rest
      }),
      [
        { id: 'lease-a', ...lease, held: '0.5' },
        { id: 'lease-b', ...lease, held: '0.75' },
        { id: 'lease-c', ...lease, held: '2.3' },
      ],
    )
    const first = (await ask('GET', '/admin/leases?limit=2')).body
    assert.deepEqual(first.data, whole.data.slice(0, 2))
    const second = (await ask('GET', `/admin/leases?limit=2&cursor=${first.next_cursor}`)).body
    assert.deepEqual([second.data, second.next_cursor], [whole.data.slice(2), null])

    await ask('POST', '/admin/accounts', { id: 'beside' })
    await ask('POST', '/admin/accounts/beside/deposits', { amount: '100', reference: 'first' })
    await take('lease-b2', '1', 'beside')
    const listed = async (query: string) =>
      (await ask('GET', `/admin/leases?${query}`)).body.data.map(({ id }: { id: string }) => id)
    assert.deepEqual(await listed('account=acme'), ['lease-a', 'lease-b', 'lease-c'])
    assert.deepEqual(await listed('account=beside'), ['lease-b2'])
    assert.deepEqual(await listed('account=nobody'), [])
  })
})

it('the ledger is checked once for all who ask meanwhile, and anew for the next', async (t) => {
  const { accounts, ledger, close } = await sqlStores()
  t.after(close)
  const sound = await ledger.check()
  const gate = Promise.withResolvers<typeof sound>()
  const { mock } = t.mock.method(ledger, 'check', () => gate.promise)
  let asked = 0
  const server = await serveApp((app) => {
    app.use((_req, _res, next) => {
      asked++
      next()
    })
    app.use(adminRoutes({ accounts, ledger }))
  })
  t.after(() => server.close())
  const check = async () => (await fetch(`${server.url}/ledger/check`)).json()
  await fetch(`${server.url}/accounts`)
  const both = Promise.all([check(), check()])
  await until(() => asked === 3)
  // The state before the check in the second request.
  await sleep(20)
  gate.resolve(sound)
  const [one, other] = await both
  assert.deepEqual(one, other)
  assert.equal(mock.callCount(), 1)
  await check()
  assert.equal(mock.callCount(), 2)
})
