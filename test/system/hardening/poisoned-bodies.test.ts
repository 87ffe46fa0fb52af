import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { ADMIN_BODIES, ownGateway } from './own-gateway.ts'

const { ask } = await ownGateway()
afterEach(assertClean)

/** Bodies with members that some code takes for the prototype of everything. */
const MESSAGES = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]
const BODIES: Record<string, object> = {
  chat: { model: 'chat', max_tokens: 5, messages: MESSAGES, metadata: {}, provider: {} },
  input: { model: 'chat', input: 'hi', prompt: 'hi', query: 'hi', documents: ['hi'], provider: {} },
}

/** JSON text with what poisons in each of its objects. */
function poisoned(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(poisoned).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${poisoned(member)}`)
  return `{${[...members, ...POISON].join(',')}}`
}

const POISON = [
  '"__proto__":{"polluted":true,"model":"chat","enabled":true}',
  '"constructor":{"prototype":{"polluted":true}}',
  '"prototype":{"polluted":true}',
]
/** Names that every object answers to. */
const INHERITED = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']

function assertClean(): void {
  for (const what of [{}, [], () => {}, '', 0]) {
    assert.equal((what as { polluted?: unknown }).polluted, undefined, 'polluted')
  }
  assert.deepEqual(Object.keys(Object.prototype), [])
}

describe('a body with __proto__, constructor and prototype in each of its objects changes no other object', () => {
  for (const { path } of OPERATIONS) {
    for (const [name, body] of Object.entries(BODIES)) {
      it(`POST ${path}, ${name}`, async () => {
        assert.ok((await ask('POST', path, poisoned(body))) < 500)
      })
    }
  }

  for (const [method, path, body] of ADMIN_BODIES) {
    it(`${method} ${path}`, async () => {
      // The schema is strict: a member that it does not know is refused, and one called __proto__ is never taken.
      assert.equal(await ask(method, path, poisoned(body)), 400)
    })
  }

  it('nor does a provider constraint in a header, or a query', async () => {
    const constraint = { 'x-gateway-provider': `{"only":["p"],${POISON.join(',')}}` }
    assert.ok((await ask('POST', '/v1/chat/completions', JSON.stringify(BODIES.chat), constraint)) < 500)
    for (const query of [
      '__proto__[polluted]=1',
      '__proto__.polluted=1',
      'constructor[prototype][polluted]=1',
    ]) {
      for (const path of ['/v1/calls', '/admin/accounts'])
        assert.ok((await ask('GET', `${path}?${query}`)) < 500)
    }
  })

  it('nor does a body that gives members only by its prototype: they are not there', async () => {
    const inherited = `{"__proto__":${JSON.stringify(BODIES.chat)}}`
    assert.equal(await ask('POST', '/v1/chat/completions', inherited), 400)
    assert.equal(await ask('POST', '/admin/accounts', '{"__proto__":{"id":"ghost"}}'), 400)
    assert.equal(await ask('GET', '/admin/accounts/ghost'), 404)
  })
})

describe('a name that every object answers to is a name like any other', () => {
  for (const name of INHERITED) {
    it(name, async () => {
      const body = { ...BODIES.chat, model: name }
      assert.equal(await ask('POST', '/v1/chat/completions', JSON.stringify(body)), 404, 'as a model')
      assert.equal(await ask('GET', `/v1/models/${name}`), 404)
      assert.equal(await ask('GET', `/v1/models/${name}/routing`), 404)
      assert.equal(await ask('GET', `/v1/calls/${name}`), 404)
      assert.equal(await ask('GET', `/v1/calls?code=${name}`), 400)
      assert.equal(await ask('GET', `/admin/accounts/${name}`), 404)
      assert.equal(await ask('GET', `/${name}`), 404)
      assert.equal(await ask('GET', '/v1/models', undefined, { authorization: `Bearer ${name}` }), 401)
      const { provider: _, ...free } = BODIES.chat as { provider?: object }
      const only = { 'x-gateway-provider': JSON.stringify({ only: [name], sort: 'price' }) }
      assert.equal(await ask('POST', '/v1/chat/completions', JSON.stringify(free), only), 503)
    })
  }
})

describe('a config file', () => {
  const config = {
    accounts: [{ id: 'acme', limits: { rpm: 1 } }],
    keys: [{ id: 'k', account: 'acme', secret: 's' }],
    models: [{ id: 'chat', kind: 'chat', price: { perRequest: '1' } }],
    lines: [
      {
        id: 'l',
        provider: 'p',
        protocol: 'openai',
        baseUrl: 'http://x/v1',
        models: { chat: 'u' },
        headers: {},
      },
    ],
    routing: { strategy: 'priority' },
  }

  it('poisoned in each of its objects is refused, each place named', () => {
    assert.throws(
      () => loadConfig(JSON.parse(poisoned(config))),
      (error) =>
        error instanceof ConfigError && error.faults.some((fault) => /^lines\[0\]\.constructor/.test(fault)),
    )
  })

  it('that gives members only by its prototype does not have them', () => {
    assert.throws(() => loadConfig(JSON.parse(`{"__proto__":${JSON.stringify(config)}}`)), ConfigError)
  })

  it('may not name a model that it does not have by what every object answers to', () => {
    // As the name of a member "__proto__" is left out by the schema, which leaves a line without models.
    for (const name of INHERITED.slice(1)) {
      const lines = JSON.stringify(config).replace('"models":{"chat":"u"}', `"models":{"${name}":"u"}`)
      assert.throws(() => loadConfig(JSON.parse(lines)), ConfigError, name)
      const keys = { ...config, keys: [{ id: 'k', account: name, secret: 's' }] }
      assert.throws(() => loadConfig(keys), ConfigError, name)
    }
  })
})
