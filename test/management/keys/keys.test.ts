import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { type AdminServer, onEveryBackend, serveAdmin, sqlStores } from '../admin-server.ts'

const SECRET = /^sk-[\w-]{43}$/

async function statusFor(server: AdminServer, secret: string): Promise<number> {
  const response = await fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } })
  await response.arrayBuffer()
  return response.status
}

onEveryBackend('keys over the admin API', (server) => {
  it('shows a key of the config, without its secret', async () => {
    const { status, headers, body } = await server().ask('GET', '/admin/keys/key_acme')
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'private, no-store')
    const { created_at, ...rest } = body
    assert.deepEqual(rest, {
      id: 'key_acme',
      object: 'key',
      account: 'acme',
      name: null,
      note: null,
      tags: {},
      enabled: true,
      expires_at: null,
      quota: null,
      allow_ips: null,
      allow_models: null,
      limits: { rpm: null, tpm: null },
      spent: '0',
      leased: '0',
      available: null,
      previous_secret_expires_at: null,
      warnings: [],
      last_used_at: null,
    })
    assert.ok(Date.parse(created_at) <= Date.now())
  })

  it('makes a key of an account, and shows its secret this once', async () => {
    const made = await server().ask('POST', '/admin/keys', { account: 'acme' })
    assert.equal(made.status, 201)
    assert.equal(made.headers.get('cache-control'), 'private, no-store')
    const { secret = '', ...key } = made.body
    assert.match(secret, SECRET)
    assert.match(key.id, /^key_[0-9a-f]{24}$/)
    assert.equal(await statusFor(server(), secret), 200)
    const shown = await server().ask('GET', `/admin/keys/${key.id}`)
    assert.deepEqual(shown.body, key)
    const everything = [
      (await server().ask('GET', '/admin/keys')).body,
      (await server().ask('PATCH', `/admin/keys/${key.id}`, { quota: '1' })).body,
      (await server().ask('GET', '/admin/changes')).body,
    ]
    assert.ok(!JSON.stringify(everything).includes(secret))
  })

  it('makes a key with all that can be said of it', async () => {
    const said = {
      enabled: false,
      expires_at: '2030-01-01T00:00:00.000Z',
      quota: '5.5',
      allow_ips: ['10.0.0.0/8', '::1'],
      allow_models: ['chat-*'],
      limits: { rpm: 60, tpm: null },
      name: 'Search, live',
      note: 'Ask Ada.',
      tags: { team: 'search', env: 'prod' },
    }
    const { status, body } = await server().ask('POST', '/admin/keys', {
      id: 'own',
      account: 'acme',
      ...said,
    })
    assert.equal(status, 201)
    assert.deepEqual({ ...body, ...said, available: '5.5' }, body)
    const again = await server().ask('POST', '/admin/keys', { id: 'own', account: 'acme' })
    assert.deepEqual([again.status, again.body.error.code], [409, 'conflict'])
  })

  it('changes what is said and leaves the rest; null lifts it', async () => {
    const said = {
      quota: '5',
      limits: { rpm: 1, tpm: 2 },
      allow_models: ['a'],
      expires_at: '2030-01-01T00:00:00Z',
    }
    const { secret, ...made } = (await server().ask('POST', '/admin/keys', { account: 'acme', ...said })).body
    const path = `/admin/keys/${made.id}`
    const changed = await server().ask('PATCH', path, { limits: { rpm: 3 }, allow_models: null })
    assert.equal(changed.status, 200)
    assert.deepEqual(changed.body, { ...made, limits: { rpm: 3, tpm: 2 }, allow_models: null })
    const lifted = await server().ask('PATCH', path, { quota: null, expires_at: null })
    assert.deepEqual(lifted.body, { ...changed.body, quota: null, available: null, expires_at: null })
    assert.deepEqual((await server().ask('PATCH', path, {})).body, lifted.body)
  })

  for (const [what, change, status] of [
    ['disabled', { enabled: false }, 403],
    ['expired', { expires_at: '2020-01-01T00:00:00Z' }, 403],
    ['bound to other addresses', { allow_ips: ['192.0.2.0/24'] }, 403],
  ] as const) {
    it(`a key that is ${what} is refused`, async () => {
      const { id, secret = '' } = (await server().ask('POST', '/admin/keys', { account: 'acme' })).body
      assert.equal(await statusFor(server(), secret), 200)
      await server().ask('PATCH', `/admin/keys/${id}`, change)
      assert.equal(await statusFor(server(), secret), status)
    })
  }

  it('gives a key another secret, shown this once; the one before opens nothing', async () => {
    const { id, secret: before = '' } = (await server().ask('POST', '/admin/keys', { account: 'acme' })).body
    const rotated = await server().ask('POST', `/admin/keys/${id}/rotate`)
    assert.equal(rotated.status, 200)
    const { secret = '', ...key } = rotated.body
    assert.match(secret, SECRET)
    assert.notEqual(secret, before)
    assert.deepEqual((await server().ask('GET', `/admin/keys/${id}`)).body, key)
    assert.equal(await statusFor(server(), secret), 200)
    assert.equal(await statusFor(server(), before), 401)
  })

  it('keeps the secret before for an overlap, once only', async () => {
    const made = (await server().ask('POST', '/admin/keys', { account: 'acme' })).body
    const beside = (await server().ask('POST', '/admin/keys', { account: 'acme' })).body
    const path = `/admin/keys/${made.id}`
    const second = (await server().ask('POST', `${path}/rotate`, { overlap_seconds: 604_800 })).body
    assert.deepEqual(await statuses(server(), made, second), [200, 200])
    const { previous_secret_expires_at: until } = second as unknown as Record<string, string>
    assert.ok(Math.abs(Date.parse(until ?? '') - Date.now() - 604_800_000) < 60_000, until)
    const third = (await server().ask('POST', `${path}/rotate`, { overlap_seconds: 60 })).body
    assert.deepEqual(await statuses(server(), made, second, third), [401, 200, 200])
    const fourth = (await server().ask('POST', `${path}/rotate`, {})).body
    assert.deepEqual(await statuses(server(), made, second, third, fourth), [401, 401, 401, 200])
    assert.equal((fourth as unknown as Record<string, unknown>).previous_secret_expires_at, null)
    assert.equal(await statusFor(server(), beside.secret ?? ''), 200)
    for (const body of [
      { overlap_seconds: -1 },
      { overlap_seconds: 604_801 },
      { overlap_seconds: '60' },
      { overlap: 60 },
    ]) {
      const refused = await server().ask('POST', `${path}/rotate`, body)
      assert.deepEqual([refused.status, refused.body.error.param], [400, Object.keys(body)[0]])
    }
    assert.deepEqual(
      await statuses(server(), third, fourth),
      [401, 200],
      'a refused rotation rotates nothing',
    )
  })

  it('deletes a key for good', async () => {
    const { id, secret = '' } = (await server().ask('POST', '/admin/keys', { account: 'acme' })).body
    const deleted = await server().ask('DELETE', `/admin/keys/${id}`)
    assert.equal(deleted.status, 200)
    assert.deepEqual(deleted.body, { id, object: 'key', deleted: true })
    assert.equal(await statusFor(server(), secret), 401)
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { enabled: true }],
      ['DELETE', '', undefined],
      ['POST', '/rotate', undefined],
    ] as const) {
      const answer = await server().ask(method, `/admin/keys/${id}${path}`, body)
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'not_found'], method + path)
    }
    const again = await server().ask('POST', '/admin/keys', { id, account: 'acme' })
    assert.equal(again.status, 409)
  })

  it('lists keys in the order of their ids, page by page, of one account or of all', async () => {
    for (const id of ['l2', 'l1', 'l3']) await server().ask('POST', '/admin/keys', { id, account: 'globex' })
    const first = (await server().ask('GET', '/admin/keys?account=globex&limit=2')).body
    assert.deepEqual(
      first.data.map(({ id }) => id),
      ['l1', 'l2'],
    )
    const query = `account=globex&limit=2&cursor=${first.next_cursor}`
    const second = (await server().ask('GET', `/admin/keys?${query}`)).body
    assert.deepEqual([second.data.map(({ id }) => id), second.next_cursor], [['l3'], null])
    const all = (await server().ask('GET', '/admin/keys?limit=100')).body.data
    assert.ok(all.some(({ id }) => id === 'key_acme'))
  })
})

async function statuses(server: AdminServer, ...keys: readonly { readonly secret?: string }[]) {
  return Promise.all(keys.map(({ secret }) => statusFor(server, secret ?? '')))
}

describe('a member that a key cannot have', () => {
  const cleanUp = cleaningUp()
  let server: AdminServer
  before(async () => {
    server = await serveAdmin(await sqlStores())
    cleanUp.after(() => server.close())
  })

  for (const [body, param] of [
    [{}, 'account'],
    [{ account: 'nobody' }, 'account'],
    [{ account: 'acme', id: 'two words' }, 'id'],
    [{ account: 'acme', secret: 'sk-own' }, 'secret'],
    [{ account: 'acme', quota: 5 }, 'quota'],
    [{ account: 'acme', quota: '-1' }, 'quota'],
    [{ account: 'acme', quota: '9223372037' }, 'quota'],
    [{ account: 'acme', quota: '1e3' }, 'quota'],
    [{ account: 'acme', expires_at: 'tomorrow' }, 'expires_at'],
    [{ account: 'acme', expires_at: 1 }, 'expires_at'],
    [{ account: 'acme', allow_ips: ['10.0.0.0/33'] }, 'allow_ips[0]'],
    [{ account: 'acme', allow_ips: ['::1', 'localhost'] }, 'allow_ips[1]'],
    [{ account: 'acme', allow_models: [''] }, 'allow_models[0]'],
    [{ account: 'acme', limits: { rpm: 0 } }, 'limits.rpm'],
    [{ account: 'acme', limits: { concurrency: 1 } }, 'limits.concurrency'],
    [{ account: 'acme', enabled: 'yes' }, 'enabled'],
    [{ account: 'acme', allowIps: [] }, 'allowIps'],
    [{ account: 'acme', name: 'n'.repeat(201) }, 'name'],
    [{ account: 'acme', note: 5 }, 'note'],
    [{ account: 'acme', tags: ['a'] }, 'tags'],
    [{ account: 'acme', tags: { team: 5 } }, 'tags.team'],
    [{ account: 'acme', tags: { team: 'é'.repeat(33) } }, 'tags.team'],
    [{ account: 'acme', tags: { team: 'a\nb' } }, 'tags.team'],
    [{ account: 'acme', tags: { 'a=b': 'c' } }, 'tags["a=b"]'],
    [
      { account: 'acme', tags: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`t${i}`, 'x'])) },
      'tags',
    ],
  ] as const) {
    it(`is refused, naming it: ${JSON.stringify(body)}`, async () => {
      const { status, body: answer } = await server.ask('POST', '/admin/keys', body)
      assert.deepEqual([status, answer.error.code, answer.error.param], [400, 'invalid_request', param])
      assert.equal((await server.ask('GET', '/admin/keys')).body.data.length, 1, 'nothing was made')
    })
  }
})
