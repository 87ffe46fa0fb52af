import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Budgets, LeasePool } from '../../../lib/ledger/index.ts'
import { type AdminServer, onEveryBackend } from '../admin-server.ts'

const MILLION = 1_000_000n

onEveryBackend('budgets over the admin API', (server) => {
  let made = 0
  const account = async () => {
    const id = `acme-${++made}`
    await server().ask('POST', '/admin/accounts', { id, prepaid: false })
    return id
  }
  const create = async (scope: object, terms: object = {}) => {
    const body = { scope, amount: '10', period: 'total', ...terms }
    const { status, body: budget } = await server().ask('POST', '/admin/budgets', body)
    assert.equal(status, 201, JSON.stringify(budget))
    return budget as unknown as { id: string } & Record<string, unknown>
  }
  const read = async (id: string) =>
    (await server().ask('GET', `/admin/budgets/${id}`)).body as unknown as Record<string, unknown>

  /** A process that spends; budgets are as the store has them now. */
  const spender = async (backend: AdminServer) => {
    const pool = new LeasePool({ ledger: backend.ledger })
    const budgets = new Budgets({ store: backend.budgets, pollMs: 4000 })
    await budgets.refresh()
    const spend = async (
      payer: string,
      amount: bigint,
      {
        key = null,
        user = null,
        tags = null,
      }: { key?: string | null; user?: string | null; tags?: Record<string, string> | null } = {},
    ) => {
      const matching = budgets.matching({ account: payer, key, user, tags }, Date.now())
      const held = await pool.reserve({ account: payer, key, amount, budgets: matching })
      if ('refused' in held) return [held.refused, held.budget?.budget] as const
      const requestId = `req_${++made}`
      await held.settle({ requestId, amount, at: Date.now(), basis: () => '[]', claim: null, entry: null })
      return ['spent', requestId] as const
    }
    return {
      budgets,
      spend,
      async close() {
        budgets.close()
        await pool.close()
      },
    }
  }

  const assertSound = async () =>
    assert.deepEqual((await server().ask('GET', '/admin/ledger/check')).body.violations, [])

  it('is made, shown, listed, changed and deleted', async () => {
    const [one, other] = [await account(), await account()]
    const terms = { amount: '12.50', period: 'month', timezone: 'Asia/Tokyo', soft: [0.8, 0.5] }
    const budget = await create({ account: one, tag: 'team=search' }, terms)
    const { id, created_at, period_start, resets_at, ...rest } = budget
    assert.deepEqual(rest, {
      object: 'budget',
      scope: { account: one, key: null, user: null, tag: 'team=search' },
      amount: '12.5',
      period: 'month',
      timezone: 'Asia/Tokyo',
      hard: true,
      soft: [0.5, 0.8],
      spent: '0',
      left: '12.5',
    })
    assert.match(String(resets_at), /T15:00:00\.000Z$/, 'midnight in Tokyo')
    assert.match(String(period_start), /T15:00:00\.000Z$/)
    assert.ok(Date.parse(String(created_at)) > 0)
    assert.deepEqual(await read(id), budget)
    const beside = await create({ account: other })
    assert.deepEqual([beside.period_start, beside.resets_at], [null, null])
    const listed = (await server().ask('GET', `/admin/budgets?account=${one}`)).body
    assert.deepEqual([listed.data, listed.next_cursor], [[budget], null])
    const changed = await server().ask('PATCH', `/admin/budgets/${id}`, {
      amount: '20',
      hard: false,
      soft: [],
    })
    assert.deepEqual(changed.body, { ...budget, amount: '20', hard: false, soft: [], left: '20' })
    assert.deepEqual((await server().ask('DELETE', `/admin/budgets/${id}`)).body, {
      id,
      object: 'budget',
      deleted: true,
    })
    for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const)
      assert.equal((await server().ask(method, `/admin/budgets/${id}`, body)).status, 404)
    const recorded = (await server().ask('GET', `/admin/changes?subject=${id}`)).body.data
    assert.deepEqual(
      (recorded as readonly { action?: string }[]).map(({ action }) => action),
      ['budget.deleted', 'budget.changed', 'budget.created'],
    )
    assert.deepEqual(await read(beside.id), beside)
  })

  it('a value that is no budget is refused by its member', async () => {
    const own = await account()
    const good = { scope: { account: own }, amount: '1', period: 'day' }
    for (const [param, body] of [
      ['scope.account', { ...good, scope: { account: 'nobody' } }],
      ['scope.key', { ...good, scope: { account: own, key: 'key_acme' } }],
      ['scope.tag', { ...good, scope: { account: own, tag: 'team' } }],
      // Calls have these users by another name.
      ['scope.user', { ...good, scope: { account: own, user: 'ann ' } }],
      ['scope.user', { ...good, scope: { account: own, user: 'ann\u0000' } }],
      ['scope.user', { ...good, scope: { account: own, user: 'é'.repeat(65) } }],
      ['scope.team', { ...good, scope: { account: own, team: 'x' } }],
      ['amount', { ...good, amount: '0' }],
      ['period', { ...good, period: 'year' }],
      ['timezone', { ...good, timezone: 'Mars/Base' }],
      ['soft[0]', { ...good, soft: [1.5] }],
      ['soft', { ...good, soft: [0.5, 0.5] }],
      ['limit', { ...good, limit: 1 }],
    ] as const) {
      const { status, body: answer } = await server().ask('POST', '/admin/budgets', body)
      assert.deepEqual([status, answer.error.code, answer.error.param], [400, 'invalid_request', param])
    }
    const { id } = await create({ account: own })
    const { status, body } = await server().ask('PATCH', `/admin/budgets/${id}`, { period: 'day' })
    assert.deepEqual([status, body.error.param], [400, 'period'])
  })

  it('a hard budget refuses calls that its rest does not cover, and no others', async (t) => {
    const [own, beside] = [await account(), await account()]
    const whole = await create({ account: own }, { amount: '0.010' })
    const team = await create({ account: own, tag: 'team=search' }, { amount: '0.004' })
    const process = await spender(server())
    t.after(() => process.close())
    const search = { tags: { env: 'prod', team: 'search' } }
    assert.equal((await process.spend(own, 3n * MILLION, search))[0], 'spent')
    assert.deepEqual(await process.spend(own, 3n * MILLION, search), ['key_quota_exhausted', team.id])
    assert.equal((await process.spend(own, 3n * MILLION, { tags: { team: 'ads' } }))[0], 'spent')
    assert.equal((await process.spend(own, 4n * MILLION))[0], 'spent')
    assert.deepEqual(await process.spend(own, MILLION), ['insufficient_balance', whole.id])
    assert.equal((await process.spend(beside, 50n * MILLION, search))[0], 'spent')
    assert.deepEqual([(await read(team.id)).spent, (await read(team.id)).left], ['0.003', '0.001'])
    assert.deepEqual([(await read(whole.id)).spent, (await read(whole.id)).left], ['0.01', '0'])
    const raised = await server().ask('PATCH', `/admin/budgets/${whole.id}`, { amount: '0.02' })
    assert.equal(raised.status, 200)
    assert.equal((await process.spend(own, MILLION))[0], 'spent', 'at once, because the ledger is asked')
    await assertSound()
  })

  it('a soft budget counts and refuses nothing, also beside a key and a user', async (t) => {
    const own = await account()
    await server().ask('POST', '/admin/keys', { account: own, id: `key-${own}` })
    const soft = await create(
      { account: own, key: `key-${own}`, user: 'ann' },
      { amount: '0.001', hard: false },
    )
    const process = await spender(server())
    t.after(() => process.close())
    const of = (user: string) => ({ key: `key-${own}`, user })
    assert.equal((await process.spend(own, 3n * MILLION, of('ann')))[0], 'spent')
    assert.equal((await process.spend(own, 3n * MILLION, of('bob')))[0], 'spent')
    assert.equal((await process.spend(own, 3n * MILLION, { user: 'ann' }))[0], 'spent')
    assert.deepEqual([(await read(soft.id)).spent, (await read(soft.id)).left], ['0.003', '-0.002'])
    await assertSound()
  })

  it('two processes spend one budget at once, never beyond it, and all of it', async (t) => {
    const [own, beside] = [await account(), await account()]
    const budget = await create({ account: own }, { amount: '0.1' })
    const processes = [await spender(server()), await spender(server())]
    t.after(() => Promise.all(processes.map((each) => each.close())))
    const outcomes = await Promise.all(
      Array.from({ length: 160 }, async (_, i) => {
        const process = processes[i % 2] as (typeof processes)[0]
        const [others] = await process.spend(beside, MILLION)
        assert.equal(others, 'spent')
        return (await process.spend(own, MILLION))[0]
      }),
    )
    const spent = outcomes.filter((outcome) => outcome === 'spent').length
    assert.ok(spent <= 100, `${spent} of 100`)
    const refusals = new Set(outcomes.filter((outcome) => outcome !== 'spent'))
    for (const refusal of refusals)
      assert.ok(refusal === 'insufficient_balance' || refusal === 'quota_lease_exhausted', refusal)
    assert.equal((await read(budget.id)).spent, String(spent / 1000))
    await assertSound()
  })

  it('a budget that is deleted while leases are out leaves nothing held, and the check holds', async () => {
    const own = await account()
    const { id } = await create({ account: own }, { amount: '5' })
    const process = await spender(server())
    assert.equal((await process.spend(own, MILLION))[0], 'spent')
    const wallets = async () =>
      (await server().ledger.leases()).filter(({ wallet }) => wallet.startsWith(`budget:${id}`))
    assert.equal((await wallets()).length, 1)
    assert.equal((await server().ask('DELETE', `/admin/budgets/${id}`)).status, 200)
    // This process does not know yet.
    assert.equal((await process.spend(own, 2n * MILLION))[0], 'spent')
    await process.budgets.refresh()
    assert.deepEqual(
      process.budgets.matching({ account: own, key: null, user: null, tags: null }, Date.now()),
      [],
    )
    await process.close()
    assert.deepEqual(await wallets(), [])
    await assertSound()
  })

  it('a void gives back to the budgets, too', async (t) => {
    const own = await account()
    const budget = await create({ account: own }, { amount: '0.004' })
    const process = await spender(server())
    t.after(() => process.close())
    const [, requestId] = await process.spend(own, 4n * MILLION)
    const undone = {
      kind: 'void' as const,
      account: own,
      key: null,
      amount: 0n,
      at: 1,
      draws: [],
      basis: null,
    }
    await server().ledger.settle([{ ...undone, requestId: String(requestId), claim: null, entry: null }])
    assert.equal((await read(budget.id)).spent, '0')
    assert.equal((await process.spend(own, 4n * MILLION))[0], 'spent')
    await assertSound()
  })
})
