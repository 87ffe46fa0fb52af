import assert from 'node:assert/strict'
import { it } from 'node:test'
import { onEveryBackend } from '../admin-server.ts'

onEveryBackend('deposits over the admin API', (server) => {
  const fresh = async (id: string, extra: object = {}): Promise<string> => {
    assert.equal((await server().ask('POST', '/admin/accounts', { id, ...extra })).status, 201)
    return `/admin/accounts/${id}`
  }
  const money = async (path: string) => {
    const { deposited, spent, balance, leased, available } = (await server().ask('GET', path)).body
    return { deposited, spent, balance, leased, available }
  }

  it('adds to the balance', async () => {
    const path = await fresh('adds')
    const first = await server().ask('POST', `${path}/deposits`, { amount: '12.50', reference: 'inv-1' })
    assert.equal(first.status, 201)
    const { created_at, ...rest } = first.body
    assert.deepEqual(rest, { object: 'deposit', account: 'adds', amount: '12.5', reference: 'inv-1' })
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    await server().ask('POST', `${path}/deposits`, { amount: '0.000000001', reference: 'inv-2' })
    const sum = '12.500000001'
    assert.deepEqual(await money(path), {
      deposited: sum,
      spent: '0',
      balance: sum,
      leased: '0',
      available: sum,
    })
  })

  it('the same reference with the same amount is the same deposit, and answered alike', async () => {
    const path = await fresh('repeats')
    const first = await server().ask('POST', `${path}/deposits`, { amount: '3', reference: 'inv' })
    for (const amount of ['3', '3.00', '3.000000000']) {
      const again = await server().ask('POST', `${path}/deposits`, { amount, reference: 'inv' })
      assert.equal(again.status, 200)
      assert.deepEqual(again.body, first.body)
    }
    assert.equal((await money(path)).deposited, '3')
  })

  it('the same reference with another amount is a conflict, and changes nothing', async () => {
    const path = await fresh('conflicts')
    await server().ask('POST', `${path}/deposits`, { amount: '3', reference: 'inv' })
    const other = await server().ask('POST', `${path}/deposits`, { amount: '3.01', reference: 'inv' })
    assert.deepEqual([other.status, other.body.error.code], [409, 'conflict'])
    assert.equal((await money(path)).deposited, '3')
  })

  it('many at once with one reference are one', async () => {
    const path = await fresh('at-once')
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        server().ask('POST', `${path}/deposits`, { amount: '1.5', reference: 'inv' }),
      ),
    )
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [...Array(19).fill(200), 201])
    assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1)
    assert.equal((await money(path)).deposited, '1.5')
  })

  it('an account cannot be given more than there are nano-units for', async () => {
    const path = await fresh('full')
    const most = '9223372036.854775807'
    const beyond = await server().ask('POST', `${path}/deposits`, {
      amount: '9223372036.854775808',
      reference: 'a',
    })
    assert.deepEqual([beyond.status, beyond.body.error.param], [400, 'amount'])
    assert.equal(
      (await server().ask('POST', `${path}/deposits`, { amount: '1', reference: 'b' })).status,
      201,
    )
    const sum = await server().ask('POST', `${path}/deposits`, { amount: most, reference: 'c' })
    assert.deepEqual(
      [sum.status, sum.body.error.code, sum.body.error.param],
      [400, 'invalid_request', 'amount'],
    )
    assert.equal((await money(path)).deposited, '1')
  })

  it('a postpaid account has deposits too, and a balance below zero', async () => {
    const path = await fresh('postpaid', { prepaid: false })
    await server().ask('POST', `${path}/deposits`, { amount: '2', reference: 'inv' })
    await server().ledger.settle([
      {
        kind: 'charge',
        requestId: 'req_postpaid',
        account: 'postpaid',
        key: null,
        amount: 5_000_000_000n,
        at: Date.now(),
        draws: [],
        basis: null,
        claim: null,
        entry: null,
      },
    ])
    assert.deepEqual(await money(path), {
      deposited: '2',
      spent: '5',
      balance: '-3',
      leased: '0',
      available: '-3',
    })
  })
})
