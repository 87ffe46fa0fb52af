import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import type { GatewayOptions } from 'express-model-gateway/gateway'
import { ConfigError } from '../../lib/index.ts'
import { createGateway } from '../support/any-config.ts'

const CONFIG = {
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:1/v1', models: { m: 'u' } },
  ],
}
const ADMIN_TOKEN = 'an-admin-token-of-the-tests'
const PROVIDER = { issuer: 'https://login.example', clientId: 'c', clientSecret: 's' }

/** Options that cannot be meant, and the beginnings of all faults that are reported. */
const WRONG: readonly [what: string, options: object, ...faults: string[]][] = [
  ['an address that is no string', { databaseUrl: new URL('sqlite:x.db') }, 'databaseUrl must be'],
  ['null for an address', { databaseUrl: null }, 'databaseUrl must be'],
  ['a number for a Redis', { redisUrl: 6379 }, 'redisUrl must be'],
  ['a number for a token', { adminToken: 5 }, 'adminToken must be a string'],
  [
    'a word for a switch',
    { metrics: 'yes', webhookAllowPrivate: 1 },
    'webhookAllowPrivate must be',
    'metrics must be',
  ],
  ['a level for a logger', { logger: 'info' }, 'logger must have'],
  ['a logger without methods', { logger: {} }, 'logger must have'],
  ['text for an environment', { env: 'production' }, 'env must be'],
  ['a list for options', [], 'its options must be an object'],
  ['a provider without the admin API', { signInProvider: PROVIDER }, 'signInProvider needs "adminToken"'],
  [
    'text for a provider',
    { adminToken: ADMIN_TOKEN, signInProvider: 'login' },
    'signInProvider must be an object',
  ],
  [
    'a provider with nothing in it',
    { adminToken: ADMIN_TOKEN, signInProvider: {} },
    'signInProvider.issuer must be',
    'signInProvider.clientId is needed',
    'signInProvider.clientSecret is needed',
  ],
  [
    'a provider with odd members',
    {
      adminToken: ADMIN_TOKEN,
      signInProvider: { ...PROVIDER, issuer: 'http://a.example', roleClaim: '', redirectUri: 7 },
    },
    'signInProvider.issuer must be',
    'signInProvider.roleClaim must be',
    'signInProvider.redirectUri must be',
  ],
]

it('the callback of listen hears that the port is taken, as with Express, and that it is not', async (t) => {
  const logger = { info() {}, warn() {}, error() {} }
  const gateway = await createGateway(CONFIG, { databaseUrl: 'memory:', logger })
  t.after(() => gateway.close())
  const listened = (port: number): Promise<[Server, Error | undefined]> =>
    new Promise((resolve) => {
      const server: Server = gateway.listen(port, '127.0.0.1', (error) => resolve([server, error]))
    })
  const [server, none] = await listened(0)
  assert.equal(none, undefined)
  const [, taken] = await listened((server.address() as AddressInfo).port)
  assert.equal((taken as NodeJS.ErrnoException).code, 'EADDRINUSE')
  // A caller that tries another port, or serves two addresses, is served at each.
  const [another] = await listened(0)
  for (const each of [server, another]) {
    const url = `http://127.0.0.1:${(each.address() as AddressInfo).port}/v1/models`
    assert.equal((await fetch(url)).status, 401)
  }
})

describe('the options of createGateway', () => {
  for (const [what, options, ...faults] of WRONG)
    it(`${what}: each fault is one line that names the option`, async () => {
      const given = Array.isArray(options) ? options : { databaseUrl: 'memory:', ...options }
      await assert.rejects(createGateway(CONFIG, given as GatewayOptions), (error) => {
        assert.ok(error instanceof ConfigError, String(error))
        assert.equal(error.faults.length, faults.length, error.message)
        for (const [i, fault] of faults.entries())
          assert.ok(error.faults[i]?.startsWith(`createGateway: ${fault}`), error.faults[i])
        return true
      })
    })

  it('undefined is the default, so that a variable that is not set can be passed on', async () => {
    const { NOT_SET } = process.env
    const none = undefined
    const gateway = await createGateway(CONFIG, {
      ...{ databaseUrl: 'memory:', logger: { info() {}, warn() {}, error() {} } },
      ...{ redisUrl: NOT_SET, adminToken: NOT_SET, databaseConnections: none, ledgerStallMs: none },
      ...{ ledgerConfirmMs: none, signInProvider: none, webhookAllowPrivate: none, metrics: none, env: none },
    })
    await gateway.close()
  })

  it('an empty address of Redis and an empty token are none, as in the environment', async () => {
    const logger = { info() {}, warn() {}, error() {} }
    const gateway = await createGateway(CONFIG, {
      databaseUrl: 'memory:',
      logger,
      redisUrl: '',
      adminToken: '',
    })
    await gateway.close()
  })
})
