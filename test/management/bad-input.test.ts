import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { MemoryLedger } from '../../lib/ledger/index.ts'
import { type AccountStore, adminRoutes } from '../../lib/management/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { type AdminServer, serveAdmin, sqlStores } from './admin-server.ts'

let server: AdminServer
const cleanUp = cleaningUp()
before(async () => {
  server = await serveAdmin(await sqlStores())
  cleanUp.after(() => server.close())
})

const everything = async () => (await server.ask('GET', '/admin/accounts?limit=100')).body

describe('the wrong part of a request is named', () => {
  const long = 'x'.repeat(201)
  for (const [method, path, body, param] of [
    ['POST', '/accounts', {}, 'id'],
    ['POST', '/accounts', { id: '' }, 'id'],
    ['POST', '/accounts', { id: 'two words' }, 'id'],
    ['POST', '/accounts', { id: long }, 'id'],
    ['POST', '/accounts', { id: 7 }, 'id'],
    ['POST', '/accounts', { id: 'new', name: '' }, 'name'],
    ['POST', '/accounts', { id: 'new', name: long }, 'name'],
    ['POST', '/accounts', { id: 'new', name: '\ud800' }, 'name'],
    ['POST', '/accounts', { id: 'new', prepaid: 'yes' }, 'prepaid'],
    ['POST', '/accounts', { id: 'new', limits: [] }, 'limits'],
    ['POST', '/accounts', { id: 'new', limits: { rpm: 0 } }, 'limits.rpm'],
    ['POST', '/accounts', { id: 'new', limits: { tpm: 1.5 } }, 'limits.tpm'],
    ['POST', '/accounts', { id: 'new', limits: { concurrency: '3' } }, 'limits.concurrency'],
    ['POST', '/accounts', { id: 'new', limits: { rpm: 2 ** 53 } }, 'limits.rpm'],
    ['POST', '/accounts', { id: 'new', limits: { rps: 1 } }, 'limits.rps'],
    ['POST', '/accounts', { id: 'new', regions: 'local' }, 'regions'],
    ['POST', '/accounts', { id: 'new', regions: ['local', 'a b'] }, 'regions[1]'],
    ['POST', '/accounts', { id: 'new', line_regions: [1] }, 'line_regions[0]'],
    ['POST', '/accounts', { id: 'new', lineRegions: ['us'] }, 'lineRegions'],
    ['POST', '/accounts', { id: 'new', balance: '5' }, 'balance'],
    ['PATCH', '/accounts/acme', { id: 'other' }, 'id'],
    ['PATCH', '/accounts/acme', { prepaid: null }, 'prepaid'],
    ['PATCH', '/accounts/acme', { limits: null }, 'limits'],
    ['PATCH', '/accounts/acme', { name: 'New', spent: '0' }, 'spent'],
    ['POST', '/keys', { account: 'acme', name: '\ud800' }, 'name'],
    ['POST', '/keys', { account: 'acme', tags: JSON.parse('{"__proto__":"v"}') }, 'tags.__proto__'],
    ['PATCH', '/keys/key_acme', JSON.parse('{"__proto__":{}}'), '__proto__'],
    ['POST', '/keys', { account: 'acme', note: 'a\udc00' }, 'note'],
    ['POST', '/keys', { account: 'acme', allow_models: ['chat', '\ud800*'] }, 'allow_models[1]'],
    ['PATCH', '/keys/key_acme', { name: '\ud800' }, 'name'],
    ['POST', '/accounts/acme/deposits', {}, 'amount'],
    ['POST', '/accounts/acme/deposits', { amount: '1' }, 'reference'],
    ['POST', '/accounts/acme/deposits', { amount: '1', reference: '' }, 'reference'],
    ['POST', '/accounts/acme/deposits', { amount: '1', reference: long }, 'reference'],
    ['POST', '/accounts/acme/deposits', { amount: '1', reference: 7 }, 'reference'],
    ['POST', '/accounts/acme/deposits', { amount: '1', reference: 'r', account: 'acme' }, 'account'],
    ...[
      '',
      '0',
      '-1',
      '+1',
      '1e3',
      '1,5',
      ' 1',
      '0.0000000001',
      '1'.repeat(13),
      'Infinity',
      1,
      1.5,
      null,
    ].map((amount) => ['POST', '/accounts/acme/deposits', { amount, reference: 'r' }, 'amount'] as const),
    ['GET', '/accounts?limit=0', undefined, 'limit'],
    ['GET', '/accounts?limit=101', undefined, 'limit'],
    ['GET', '/accounts?limit=1&limit=2', undefined, 'limit'],
    ['GET', '/accounts?cursor=', undefined, 'cursor'],
    ['GET', '/accounts?cursor=%2B%2B', undefined, 'cursor'],
    ['GET', `/accounts?cursor=${'a'.repeat(1001)}`, undefined, 'cursor'],
    ['GET', '/leases?limit=x', undefined, 'limit'],
  ] as const) {
    it(`${method} ${path.slice(0, 40)} ${JSON.stringify(body)?.slice(0, 60) ?? ''}`, async () => {
      const stood = await everything()
      const answer = await server.ask(method, `/admin${path}`, body)
      const { error } = answer.body
      assert.deepEqual([answer.status, error.code, error.param], [400, 'invalid_request', param])
      assert.match(error.message, /\.$/)
      assert.doesNotMatch(error.message, /undefined\b.*undefined|\[object/)
      assert.deepEqual(await everything(), stood)
    })
  }

  it('an amount that is too large, which the message says, as it does for the quota of a key', async () => {
    for (const amount of ['99999999999999999999', '9223372037']) {
      for (const [path, body] of [
        ['/accounts/acme/deposits', { amount, reference: 'r' }],
        ['/keys', { account: 'acme', quota: amount }],
      ] as const) {
        const answer = await server.ask('POST', `/admin${path}`, body)
        assert.equal(answer.status, 400)
        assert.match(answer.body.error.message, /below 9223372036/, `${path} ${amount}`)
      }
    }
  })

  for (const [what, body, headers, status] of [
    ['no JSON', '{"id":', {}, 400],
    ['no object', '[]', {}, 400],
    ['no object', '"id"', {}, 400],
    ['a form', 'id=new', { 'content-type': 'application/x-www-form-urlencoded' }, 400],
    ['too much', JSON.stringify({ id: 'new', name: 'x'.repeat(70_000) }), {}, 413],
  ] as const) {
    it(`a body that is ${what}: ${body?.slice(0, 10)}`, async () => {
      const stood = await everything()
      const answer = await server.ask('POST', '/admin/accounts', body, headers)
      assert.equal(answer.status, status)
      assert.equal(answer.body.error.code, status === 400 ? 'invalid_request' : 'request_too_large')
      assert.equal(answer.body.error.param ?? null, null)
      assert.deepEqual(await everything(), stood)
    })
  }

  it('no body at all is one without members', async () => {
    const { status, body } = await server.ask('POST', '/admin/accounts')
    assert.deepEqual([status, body.error.param], [400, 'id'])
  })

  it('a body without a type is taken for JSON', async () => {
    const response = await fetch(`${server.url}/admin/accounts`, {
      method: 'POST',
      headers: { authorization: 'Bearer admin-token-1' },
      body: new Blob([JSON.stringify({ id: 'untyped' })]),
    })
    assert.equal(response.status, 201)
  })
})

describe('paths that the admin API does not have', () => {
  for (const [method, path] of [
    ['GET', '/admin'],
    ['GET', '/admin/nothing'],
    ['DELETE', '/admin/accounts/acme'],
    ['PUT', '/admin/accounts/acme'],
    ['GET', '/admin/accounts/acme/deposits'],
    ['POST', '/admin/ledger/check'],
  ] as const) {
    it(`${method} ${path} is not found`, async () => {
      const { status, body } = await server.ask(method, path)
      assert.deepEqual([status, body.error.code], [404, 'not_found'])
    })
  }
})

describe('the options of the admin API', () => {
  const ledger = new MemoryLedger()
  const accounts = { deposit() {} } as unknown as AccountStore

  it('must hold a store and a ledger', () => {
    assert.throws(() => adminRoutes({ accounts: {} as typeof accounts, ledger }), /"accounts"/)
    assert.throws(() => adminRoutes({ accounts, ledger: {} as typeof ledger }), /"ledger"/)
  })
})
