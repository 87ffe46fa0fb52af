import assert from 'node:assert/strict'
import { it } from 'node:test'
import { onEveryBackend } from '../admin-server.ts'

onEveryBackend('adjustments over the admin API', (server) => {
  const REFUND = { amount: '-12.50', reference: 'refund-7', reason: 'Outage of 3 May' }

  const fresh = async (id: string, extra: object = {}): Promise<string> => {
    assert.equal((await server().ask('POST', '/admin/accounts', { id, ...extra })).status, 201)
    return `/admin/accounts/${id}`
  }
  const money = async (path: string) => {
    const { deposited, balance, available } = (await server().ask('GET', path)).body
    return { deposited, balance, available }
  }

  it('an adjustment takes from the balance or adds to it, once per reference', async () => {
    const path = await fresh('acme-2')
    const beside = await fresh('beside')
    await server().ask('POST', `${path}/deposits`, { amount: '10', reference: 'inv-1' })
    const first = await server().ask('POST', `${path}/adjustments`, REFUND)
    assert.equal(first.status, 201)
    const { created_at, ...rest } = first.body
    assert.deepEqual(rest, { object: 'adjustment', account: 'acme-2', ...REFUND, amount: '-12.5' })
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    for (const amount of ['-12.5', '-12.500000000']) {
      const again = await server().ask('POST', `${path}/adjustments`, { ...REFUND, amount, reason: 'else' })
      assert.deepEqual([again.status, again.body], [200, first.body])
    }
    const below = { deposited: '-2.5', balance: '-2.5', available: '-2.5' }
    assert.deepEqual(await money(path), below)
    await server().ask('POST', `${path}/adjustments`, { ...REFUND, amount: '2.5', reference: 'gift' })
    assert.deepEqual(await money(path), { deposited: '0', balance: '0', available: '0' })
    assert.deepEqual(await money(beside), { deposited: '0', balance: '0', available: '0' })
    const changes = await server().ask('GET', '/admin/changes?subject=acme-2')
    assert.deepEqual(
      (changes.body.data as readonly { action?: string }[]).map(({ action }) => action),
      ['account.adjusted', 'account.adjusted', 'account.deposited', 'account.created'],
    )
  })

  it('a reference of another amount, or of a deposit, is a conflict', async () => {
    const path = await fresh('conflicts')
    await server().ask('POST', `${path}/deposits`, { amount: '3', reference: 'inv' })
    await server().ask('POST', `${path}/adjustments`, REFUND)
    for (const [kind, body] of [
      ['adjustments', { ...REFUND, amount: '12.50' }],
      ['adjustments', { ...REFUND, amount: '3', reference: 'inv' }],
      ['deposits', { amount: '3', reference: 'refund-7' }],
    ] as const) {
      const { status, body: answer } = await server().ask('POST', `${path}/${kind}`, body)
      assert.deepEqual([status, answer.error.code], [409, 'conflict'])
    }
    assert.equal((await money(path)).deposited, '-9.5')
  })

  it('a body that is no adjustment changes nothing', async () => {
    const path = await fresh('unchanged')
    for (const [param, body] of [
      ['amount', { ...REFUND, amount: '0' }],
      ['amount', { ...REFUND, amount: -12.5 }],
      ['amount', { ...REFUND, amount: '-9223372036.854775808' }],
      ['reason', { amount: '1', reference: 'r' }],
      ['reason', { ...REFUND, reason: '' }],
      ['reference', { amount: '1', reason: 'r' }],
      ['note', { ...REFUND, note: 'x' }],
    ] as const) {
      const { status, body: answer } = await server().ask('POST', `${path}/adjustments`, body)
      assert.deepEqual([status, answer.error.code, answer.error.param], [400, 'invalid_request', param])
    }
    assert.equal((await money(path)).deposited, '0')
    const { violations } = (await server().ask('GET', '/admin/ledger/check')).body
    assert.deepEqual(violations, [])
  })
})
