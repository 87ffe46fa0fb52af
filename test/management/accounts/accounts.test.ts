import assert from 'node:assert/strict'
import { it } from 'node:test'
import { onEveryBackend } from '../admin-server.ts'

const NO_LIMITS = { rpm: null, tpm: null, concurrency: null }

onEveryBackend('accounts over the admin API', (server) => {
  it('shows an account of the config with what it has', async () => {
    const { status, headers, body } = await server().ask('GET', '/admin/accounts/acme')
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'private, no-store')
    const { created_at, ...rest } = body
    assert.deepEqual(rest, {
      id: 'acme',
      object: 'account',
      name: 'Acme',
      status: 'active',
      prepaid: true,
      deposited: '25',
      spent: '0',
      balance: '25',
      leased: '0',
      available: '25',
      limits: { rpm: 600, tpm: null, concurrency: 20 },
      regions: null,
      line_regions: null,
      warnings: [],
    })
    assert.equal(new Date(created_at).toISOString(), created_at)
    const postpaid = (await server().ask('GET', '/admin/accounts/globex')).body
    assert.deepEqual([postpaid.prepaid, postpaid.balance, postpaid.name], [false, '0', null])
  })

  it('makes a prepaid account of an id, with nothing on it', async () => {
    const { status, body } = await server().ask('POST', '/admin/accounts', { id: 'bare' })
    assert.equal(status, 201)
    const { created_at, ...rest } = body
    assert.deepEqual(rest, {
      id: 'bare',
      object: 'account',
      name: null,
      status: 'active',
      prepaid: true,
      deposited: '0',
      spent: '0',
      balance: '0',
      leased: '0',
      available: '0',
      limits: NO_LIMITS,
      regions: null,
      line_regions: null,
      warnings: [],
    })
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    assert.deepEqual((await server().ask('GET', '/admin/accounts/bare')).body, body)
  })

  it('makes an account with all that can be said of it', async () => {
    const said = {
      name: 'Initech',
      prepaid: false,
      limits: { rpm: 10, tpm: 5_000_000_000, concurrency: 3 },
      regions: ['local'],
      line_regions: [],
    }
    const made = await server().ask('POST', '/admin/accounts', { id: 'a/b c'.replace(' ', '%'), ...said })
    assert.equal(made.status, 201)
    const found = await server().ask('GET', '/admin/accounts/a%2Fb%25c')
    assert.deepEqual(found.body, made.body)
    assert.deepEqual({ ...found.body, ...said }, found.body)
  })

  it('makes no account twice', async () => {
    const before = (await server().ask('GET', '/admin/accounts/acme')).body
    const again = await server().ask('POST', '/admin/accounts', { id: 'acme', name: 'Other', prepaid: false })
    assert.deepEqual([again.status, again.body.error.code], [409, 'conflict'])
    assert.equal(again.headers.get('x-should-retry'), 'false')
    assert.deepEqual((await server().ask('GET', '/admin/accounts/acme')).body, before)
  })

  it('changes what is said and leaves the rest, of the limits too', async () => {
    const said = { name: 'First', limits: { rpm: 10, tpm: 20 }, regions: ['local'] }
    const made = (await server().ask('POST', '/admin/accounts', { id: 'changed', ...said })).body
    const change = { name: null, limits: { rpm: 11, concurrency: 5 }, line_regions: ['eu'] }
    const changed = await server().ask('PATCH', '/admin/accounts/changed', change)
    assert.equal(changed.status, 200)
    assert.deepEqual(changed.body, {
      ...made,
      name: null,
      limits: { rpm: 11, tpm: 20, concurrency: 5 },
      line_regions: ['eu'],
      warnings: [],
    })
    const lifted = await server().ask('PATCH', '/admin/accounts/changed', {
      limits: { tpm: null },
      regions: null,
    })
    assert.deepEqual(lifted.body, {
      ...changed.body,
      limits: { rpm: 11, tpm: null, concurrency: 5 },
      regions: null,
    })
    assert.deepEqual((await server().ask('PATCH', '/admin/accounts/changed', {})).body, lifted.body)
    assert.deepEqual((await server().ask('GET', '/admin/accounts/changed')).body, lifted.body)
  })

  it('a prepaid account that is made postpaid may overdraw, and no more once it is prepaid again', async () => {
    await server().ask('POST', '/admin/accounts', { id: 'switched' })
    const limited = async () => {
      const [wallet] = await server().ledger.wallets(['account:switched'])
      return wallet?.limited
    }
    assert.equal(await limited(), true)
    for (const prepaid of [false, true]) {
      const { body } = await server().ask('PATCH', '/admin/accounts/switched', { prepaid })
      assert.equal(body.prepaid, prepaid)
      assert.equal(await limited(), prepaid)
    }
  })

  it('changed limits and regions are what authenticate finds', async () => {
    const me = async () => {
      const response = await fetch(`${server().url}/v1/me`, { headers: { 'x-api-key': 'sk-acme' } })
      return [response.status, await response.json()]
    }
    const before = await me()
    assert.deepEqual(before, [200, { rpm: 600, tpm: null, concurrency: 20 }])
    await server().ask('PATCH', '/admin/accounts/acme', { limits: { rpm: 7 } })
    assert.deepEqual(await me(), [200, { rpm: 7, tpm: null, concurrency: 20 }])
    await server().ask('PATCH', '/admin/accounts/acme', { regions: ['mars'] })
    assert.equal((await me())[0], 403)
    await server().ask('PATCH', '/admin/accounts/acme', { limits: { rpm: 600 }, regions: null })
    assert.deepEqual(await me(), before)
  })

  it('a suspended account’s keys are refused as disabled, until it is active again', async () => {
    const me = async (secret: string) => {
      const response = await fetch(`${server().url}/v1/me`, { headers: { 'x-api-key': secret } })
      return [response.status, ((await response.json()) as { error?: { code: string } }).error?.code]
    }
    await server().ask('POST', '/admin/keys', { account: 'globex', id: 'key_globex' })
    const { secret = '' } = (await server().ask('POST', '/admin/keys/key_globex/rotate')).body
    const before = (await server().ask('GET', '/admin/accounts/acme')).body
    const suspended = await server().ask('PATCH', '/admin/accounts/acme', { status: 'suspended' })
    assert.deepEqual([suspended.status, suspended.body], [200, { ...before, status: 'suspended' }])
    assert.deepEqual(await me('sk-acme'), [403, 'key_disabled'])
    assert.deepEqual(await me(secret), [200, undefined], 'another account’s key')
    // Another change leaves it suspended, and its keys as they are.
    await server().ask('PATCH', '/admin/accounts/acme', { name: 'Acme' })
    assert.deepEqual(await me('sk-acme'), [403, 'key_disabled'])
    assert.equal((await server().ask('GET', '/admin/keys/key_acme')).body.enabled, true)
    const fresh = await server().ask('POST', '/admin/keys', { account: 'acme', id: 'key_fresh' })
    assert.deepEqual(await me(fresh.body.secret ?? ''), [403, 'key_disabled'])
    const active = await server().ask('PATCH', '/admin/accounts/acme', { status: 'active' })
    assert.deepEqual(active.body, before)
    assert.deepEqual(await me('sk-acme'), [200, undefined])
    for (const change of [{ status: 'gone' }, { status: null }, { suspended: true }]) {
      const { status, body } = await server().ask('PATCH', '/admin/accounts/acme', change)
      assert.deepEqual([status, body.error.param], [400, Object.keys(change)[0]])
    }
  })

  it('lists all accounts in the order of their ids, page by page', async () => {
    for (let i = 0; i < 7; i++) await server().ask('POST', '/admin/accounts', { id: `listed-${i}` })
    const whole = (await server().ask('GET', '/admin/accounts?limit=100')).body
    assert.equal(whole.object, 'list')
    assert.equal(whole.next_cursor, null)
    const ids = whole.data.map(({ id }) => id)
    assert.deepEqual(ids, ids.toSorted())
    assert.ok(ids.includes('acme') && ids.includes('globex') && ids.includes('listed-6'))
    const paged: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const page = (await server().ask('GET', `/admin/accounts?limit=3${query}`)).body
      assert.ok(page.data.length <= 3)
      paged.push(...page.data)
      cursor = page.next_cursor
    }
    assert.deepEqual(paged, whole.data)
    const full = (await server().ask('GET', `/admin/accounts?limit=${ids.length}`)).body
    assert.equal(full.next_cursor, null, 'no cursor behind a page that is exactly full')
  })

  it('knows no account that is not there', async () => {
    for (const [method, path, body] of [
      ['GET', '/admin/accounts/nobody', undefined],
      ['PATCH', '/admin/accounts/nobody', { name: 'Nobody' }],
      ['POST', '/admin/accounts/nobody/deposits', { amount: '1', reference: 'r' }],
      ['POST', '/admin/accounts/nobody/adjustments', { amount: '1', reference: 'r', reason: 'x' }],
    ] as const) {
      const { status, body: answer } = await server().ask(method, path, body)
      assert.deepEqual([status, answer.error.code], [404, 'not_found'], `${method} ${path}`)
    }
    assert.deepEqual(await server().ledger.wallets(['account:nobody']), [])
  })
})
