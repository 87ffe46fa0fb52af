import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { configWith, LINE } from './config.ts'

const withLine = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })

describe('the proxy of a line', () => {
  const HTTPS_PROXY = 'http://proxy:3128'
  const rows: [baseUrl: string, env: Record<string, string>, extra: object, proxy: string | undefined][] = [
    ['https://api.example.com/v1', {}, {}, undefined],
    ['https://api.example.com/v1', { HTTPS_PROXY }, {}, HTTPS_PROXY],
    ['https://api.example.com/v1', { https_proxy: 'proxy:1' }, {}, 'http://proxy:1'],
    ['http://api.example.com/v1', { HTTPS_PROXY }, {}, undefined],
    ['https://api.example.com/v1', { HTTPS_PROXY }, { proxy: false }, undefined],
    ['http://api.example.com/v1', {}, { proxy: 'https://own:1' }, 'https://own:1'],
    ['https://api.example.com/v1', { HTTPS_PROXY, NO_PROXY: '*' }, {}, undefined],
    ['https://api.example.com/v1', { HTTPS_PROXY, NO_PROXY: 'x, Example.com' }, {}, undefined],
    ['https://api.example.com/v1', { HTTPS_PROXY, no_proxy: '.example.com' }, {}, undefined],
    ['https://api.example.com/v1', { HTTPS_PROXY, NO_PROXY: 'ample.com,.com:8443' }, {}, HTTPS_PROXY],
    ['https://api.example.com:8443/v1', { HTTPS_PROXY, NO_PROXY: '.com:8443' }, {}, undefined],
    ['https://[::1]/v1', { HTTPS_PROXY, NO_PROXY: '::1' }, {}, undefined],
  ]
  for (const [baseUrl, env, extra, proxy] of rows)
    it(`is ${proxy}: ${baseUrl} ${JSON.stringify({ ...env, ...extra })}`, () =>
      assert.equal(loadConfig(withLine({ baseUrl, ...extra }), env).catalog.lines[0]?.proxy, proxy))
})

describe('the account of a line', () => {
  const oauth = { tokenUrl: 'https://login.example.com/t', clientId: 'a', clientSecret: 'b' }
  it('is recognised by its kind', () => {
    const kinds = [{ oauth }, { google: {} }, { aws: { region: 'us-east-1' } }].map(
      (apiKey) => loadConfig(withLine({ apiKey })).catalog.lines[0]?.credential,
    )
    assert.deepEqual(kinds, [
      { kind: 'oauth', ...oauth, scope: undefined },
      { kind: 'google', credentials: undefined },
      { kind: 'aws', region: 'us-east-1', service: 'bedrock' },
    ])
  })

  const faulty: [path: string, extra: object, env?: Record<string, string>][] = [
    ['lines[0].apiKey', { apiKey: '' }],
    ['lines[0].apiKey', { apiKey: {} }],
    ['lines[0].apiKey.oauth.tokenUrl', { apiKey: { oauth: { ...oauth, tokenUrl: 'ftp://x' } } }],
    ['lines[0].apiKey', { apiKey: { oauth, aws: { region: 'x' } } }],
    ['lines[0].apiKey.oauth.clientSecret', { apiKey: { oauth: { ...oauth, clientSecret: 'env:NO' } } }],
    ['lines[0].apiKey.google.credentials', { apiKey: { google: { credentials: 'no json' } } }],
    ['lines[0].apiKey.google.credentials', { apiKey: { google: { credentials: 'file:/nowhere' } } }],
    ['lines[0].proxy', { proxy: 'socks5://x' }],
    ['lines[0].tls.ca', { tls: { ca: '/nowhere/ca.pem' } }],
    ['lines[0].tls.ca', { tls: { ca: 'package.json' } }],
    ['lines[0].tls.cart', { tls: { cart: 'x' } }],
    ['lines[0].tls', { tls: { cert: '-----BEGIN CERTIFICATE-----\nx' } }],
    ['lines[0].tls', { tls: { cert: '-----BEGIN CERTIFICATE-----\nx', key: '-----BEGIN KEY-----\nx' } }],
    ['HTTPS_PROXY', {}, { HTTPS_PROXY: 'socks5://user:secret-0123@x' }],
  ]
  for (const [path, extra, env] of faulty)
    it(`is reported in one line that begins with ${path}: ${JSON.stringify(extra).slice(0, 60)}`, () => {
      assert.throws(
        () => loadConfig(withLine(extra), env),
        (error) => {
          assert.ok(error instanceof ConfigError)
          assert.equal(error.faults.length, 1, error.message)
          assert.ok(error.faults[0]?.startsWith(`${path}: `), error.message)
          assert.doesNotMatch(error.message, /secret-0123/)
          return true
        },
      )
    })
})
