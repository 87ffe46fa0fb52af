import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { ACCOUNT, configWith, KEY, LINE, MODEL, passing } from './config.ts'

function faultsOf(source: unknown, env: Record<string, string> = {}): readonly string[] {
  try {
    loadConfig(source, env)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.equal(error.message, error.faults.join('\n'))
    assert.equal(error.message.split('\n').length, error.faults.length, 'one line each')
    return error.faults
  }
  return []
}

const line = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })
const key = (extra: object) => configWith({ keys: [{ ...KEY, ...extra }] })
const model = (extra: object) => configWith({ models: [{ ...MODEL, ...extra }] })
const others = [
  { id: 'other', kind: 'chat' },
  { id: 'images', kind: 'image' },
  { id: 'vectors', kind: 'embedding' },
]
const following = (fallbacks: unknown, extra: object = {}) =>
  configWith({ models: [{ ...MODEL, fallbacks, ...extra }, ...others] })
const account = (extra: object) => configWith({ accounts: [{ ...ACCOUNT, ...extra }] })
const twice = (tier: object) => ({ tiers: [tier, tier] })

/** Each config has one fault; it must be reported once, beginning with its path. */
const single: [path: string, source: unknown][] = [
  ['(top level)', null],
  ['(top level)', []],
  ['(top level)', 'config'],
  ['colour', configWith({ colour: 'red' })],
  ['region', configWith({ region: '' })],
  ['bodyLimitBytes', configWith({ bodyLimitBytes: 1.5 })],
  ['bodyLimitBytes', configWith({ bodyLimitBytes: 10 })],
  ['onStoreError', configWith({ onStoreError: 'panic' })],
  ['onLedgerAway', configWith({ onLedgerAway: true })],
  ['trustProxy', configWith({ trustProxy: {} })],
  ['trustProxy', configWith({ trustProxy: 'loopback, nonsense' })],
  ['trustProxy', configWith({ trustProxy: ['10.0.0.0/8', 'localhost'] })],
  ['urlSigningSecret', configWith({ urlSigningSecret: 'short' })],
  ['models', configWith({ models: undefined, lines: [{ ...LINE, models: {} }] })],
  ['models', configWith({ models: [] })],
  ['models[0].fallbacks', following('other')],
  ['models[0].fallbacks[1]', following(['other', 'none'])],
  ['models[0].fallbacks[0]', following([MODEL.id, 'other'])],
  ['models[0].fallbacks[1]', following(['other', 'other'])],
  ['models[0].fallbacks[0]', following(['images', 'other'])],
  ['models[0].fallbacks', following(['vectors'], { kind: 'embedding' })],
  ['lines', configWith({ lines: [] })],
  ['lines[0].endpoints', line({ endpoints: [] })],
  ['lines[0].endpoints', line({ endpoints: 'responses' })],
  ['lines[0].endpoints[1]', line({ endpoints: ['responses', '/v1/chat/completions'] })],
  ['lines[0].endpoints[0]', line({ endpoints: ['messages'] })],
  ['lines[0].endpoints[1]', line({ protocol: 'ark', endpoints: ['contents/generations/tasks', 'videos'] })],
  ['lines[0]', configWith({ lines: ['line'] })],
  ['accounts', configWith({ accounts: {} })],
  ['accounts[0].id', account({ id: 'with space' })],
  ['accounts[0].balance', account({ balance: 25 })],
  ['accounts[0].balance', account({ balance: '1.0000000001' })],
  ['accounts[0].balance', account({ balance: '1e3' })],
  ['accounts[0].limits.rpm', account({ limits: { rpm: 0 } })],
  ['accounts[0].limits.concurrency', account({ limits: { concurrency: 1.5 } })],
  ['accounts[0].limits.rps', account({ limits: { rps: 1 } })],
  ['accounts[0].regions', account({ regions: 'eu' })],
  ['accounts[0].lineRegions[1]', account({ lineRegions: ['eu', 7] })],
  ['accounts[1].id', configWith({ accounts: [ACCOUNT, ACCOUNT] })],
  ['keys[0].account', key({ account: 'nobody' })],
  ['keys[0].secret', key({ secret: undefined })],
  ['keys[0].secret', key({ secret: '' })],
  ['keys[0].enabled', key({ enabled: 'yes' })],
  ['keys[0].expiresAt', key({ expiresAt: '2027-01-01' })],
  ['keys[0].expiresAt', key({ expiresAt: '2027-13-01T00:00:00Z' })],
  ['keys[0].quota', key({ quota: '-1' })],
  ['keys[0].allowIps[1]', key({ allowIps: ['::1', '10.0.0.0/33'] })],
  ['keys[0].allowIps[0]', key({ allowIps: ['localhost'] })],
  ['keys[0].allowModels[0]', key({ allowModels: [''] })],
  ['keys[0].limits.concurrency', key({ limits: { concurrency: 3 } })],
  ['keys[1].id', configWith({ keys: [KEY, { ...KEY, secret: 'sk-2' }] })],
  ['keys[1].secret', configWith({ keys: [KEY, { ...KEY, id: 'key_2' }] })],
  ['models[0].kind', model({ kind: 'poem' })],
  ['models[0].contextWindow', model({ contextWindow: 0 })],
  ['models[0].maxOutputTokens', model({ maxOutputTokens: 'many' })],
  ['models[0].features[1]', model({ features: ['stream', 'smell'] })],
  ['models[0].price.inputPerMillion', model({ price: { inputPerMillion: '-0.15' } })],
  ['models[0].price.inputPerMillion', model({ price: { inputPerMillion: 0.15 } })],
  ['models[0].price.perByte', model({ price: { perByte: '1' } })],
  ['models[0].price.tiers[0]', model({ price: { tiers: [{ inputPerMillion: '1' }] } })],
  ['models[0].price.tiers[0].serviceTier', model({ price: { tiers: [{ serviceTier: 'default' }] } })],
  ['models[0].price.tiers[0].aboveInputTokens', model({ price: { tiers: [{ aboveInputTokens: 0 }] } })],
  ['models[0].price.tiers[0].perByte', model({ price: { tiers: [{ aboveInputTokens: 1, perByte: '1' }] } })],
  ['models[0].price.tiers[1].aboveInputTokens', model({ price: twice({ aboveInputTokens: 9 }) })],
  ['lines[0].price.tiers[1].aboveInputTokens', line({ price: twice({ serviceTier: 'flex' }) })],
  ['lines[0].cost.tiers[1].aboveInputTokens', line({ cost: twice({ aboveInputTokens: 9 }) })],
  ['lines[0].cost.inputPerMillion', line({ cost: { inputPerMillion: '-1' } })],
  ['models[1].id', configWith({ models: [MODEL, MODEL] })],
  ['lines[0].provider', line({ provider: undefined })],
  ['lines[0].protocol', line({ protocol: 'smtp' })],
  ['lines[0].baseUrl', line({ baseUrl: 'api.example.com/v1' })],
  ['lines[0].baseUrl', line({ baseUrl: 'ftp://api.example.com/v1' })],
  ['lines[0].baseUrl', line({ baseUrl: 'https://api.example.com/v1?key=1' })],
  ['lines[0].baseUrl', line({ baseUrl: 'https://api.example.com/v1#top' })],
  ['lines[0].baseUrl', line({ baseUrl: 'https://user@api.example.com/v1' })],
  ['lines[0].baseUrl', line({ baseUrl: 'https://:password@api.example.com/v1' })],
  ['lines[0].apiKey', line({ apiKey: '' })],
  ['lines[0].apiKey', line({ apiKey: 'sk-upstream\n' })],
  ['lines[0].weight', line({ weight: -1 })],
  ['lines[0].priority', line({ priority: 0.5 })],
  ['lines[0].models', line({ models: ['chat'] })],
  ['lines[0].models.chat', line({ models: { chat: '' } })],
  ['lines[0].models.nope', line({ models: { nope: 'x' } })],
  ['lines[0].timeouts.idleMs', line({ timeouts: { idleMs: 0 } })],
  ['lines[0].timeouts.connect', line({ timeouts: { connect: 10 } })],
  ['lines[0].circuit.errorPercent', line({ circuit: { errorPercent: 101 } })],
  ['lines[0].headers.bad name', line({ headers: { 'bad name': 'x' } })],
  ['lines[0].headers.x-extra', line({ headers: { 'x-extra': 'a\r\nb' } })],
  ['lines[0].headers.Transfer-Encoding', line({ headers: { 'Transfer-Encoding': 'chunked' } })],
  ['lines[0].headers.content-length', line({ headers: { 'content-length': '5' } })],
  ['lines[0].contextWindow', line({ contextWindow: -5 })],
  ['lines[1].id', configWith({ lines: [LINE, LINE] })],
  ['routing.strategy', configWith({ routing: { strategy: 'random' } })],
  ['routing.maxAttempts', configWith({ routing: { maxAttempts: 0 } })],
  ['routing.drainMs', configWith({ routing: { drainMs: '10s' } })],
  ['passThrough[0].path', passing({ path: 'v1', lines: ['line-1'] })],
  ['passThrough[0]', passing({ path: '/v1/files' })],
  ['passThrough[0].keeps', passing({ path: '/v1/a/b/c/d', lines: ['line-1'], keeps: 'x' })],
  [
    'passThrough[0].cost.perMinute',
    passing({ path: '/v1/files', lines: ['line-1'], cost: { perMinute: '0.1' } }),
  ],
  [
    'passThrough[0].cost.perMinute',
    passing({
      path: '/v1/files',
      lines: ['line-1'],
      price: { perMinute: '0' },
      cost: { perMinute: '0.1' },
    }),
  ],
  ['passThrough[0].lines[0]', passing({ path: '/v1/files', lines: ['nope'] })],
  ['passThrough[0].model', passing({ path: '/v1/files', model: 'nope' })],
]

describe('a fault of the config', () => {
  it('does not occur in the smallest valid config', () => assert.deepEqual(faultsOf(configWith()), []))

  for (const [i, [path, source]] of single.entries()) {
    it(`is reported in one line that begins with ${path} (${i})`, () => {
      const faults = faultsOf(source)
      assert.equal(faults.length, 1, faults.join('\n'))
      assert.ok(faults[0]?.startsWith(`${path}: `), faults[0])
      assert.ok((faults[0]?.length ?? 0) > path.length + 8, 'it says what is wrong')
      assert.doesNotMatch(`${faults}`, /received|Too small|Too big|Invalid option/, 'words that are not ours')
    })
  }

  it('does not hide another: all faults are reported at once', () => {
    const source = configWith({
      colour: 1,
      shape: 2,
      lines: [{ ...LINE, weight: -1, baseUrl: 'x', extra: 1 }],
      keys: [{ ...KEY, enabled: 1 }],
    })
    const paths = faultsOf(source).map((fault) => fault.slice(0, fault.indexOf(':')))
    assert.deepEqual(paths.sort(), [
      'colour',
      'keys[0].enabled',
      'lines[0].baseUrl',
      'lines[0].extra',
      'lines[0].weight',
      'shape',
    ])
  })

  it('of the schema does not hide references to unknown names, at any place of the same config', () => {
    const source = configWith({
      keys: [
        { ...KEY, account: 'nobody', allowIps: [7, 'nowhere'] },
        { ...KEY, colour: 'red' },
      ],
      models: [MODEL, { ...MODEL, kind: 'none' }],
      lines: [
        { ...LINE, weight: -1, models: { nothing: 'up', [MODEL.id]: 7 }, headers: { host: 1, te: 'x' } },
      ],
      passThrough: [{ path: '/v1/x', lines: ['gone', 1], colour: 'red' }],
    })
    const paths = faultsOf(source).map((fault) => fault.slice(0, fault.indexOf(':')))
    assert.deepEqual(paths.sort(), [
      'keys[0].account',
      'keys[0].allowIps[0]',
      'keys[0].allowIps[1]',
      'keys[1].colour',
      'keys[1].id',
      'keys[1].secret',
      'lines[0].headers.host',
      'lines[0].headers.te',
      `lines[0].models.${MODEL.id}`,
      'lines[0].models.nothing',
      'lines[0].weight',
      'models[1].id',
      'models[1].kind',
      'passThrough[0].colour',
      'passThrough[0].lines[0]',
      'passThrough[0].lines[1]',
    ])
  })

  it('stays on one line if a name of the config has several', () => {
    const faults = faultsOf(line({ models: { 'a\nb\u2028c': 'x' } }))
    assert.deepEqual(faults, ['lines[0].models.a\\u000ab\\u2028c: there is no model "a\\u000ab\\u2028c"'])
  })

  it('never shows a secret', () => {
    const source = configWith({
      keys: [
        { ...KEY, secret: 'sk-very-secret' },
        { ...KEY, id: 'key_2', secret: 'sk-very-secret' },
      ],
      lines: [{ ...LINE, apiKey: 'sk-very-secret\n', baseUrl: 'https://me:sk-very-secret@example.com' }],
    })
    assert.equal(faultsOf(source).length, 3)
    assert.doesNotMatch(faultsOf(source).join('\n'), /very-secret/)
  })
})

describe('a secret given as env:NAME', () => {
  const env = { UPSTREAM: 'sk-up', CALLER: 'sk-caller', SIGN: 'x'.repeat(16), EXTRA: 'hush' }

  it('is read from the environment at each of its places', () => {
    const config = loadConfig(
      configWith({
        keys: [{ ...KEY, secret: 'env:CALLER' }],
        lines: [{ ...LINE, apiKey: 'env:UPSTREAM', headers: { 'x-extra': 'env:EXTRA', 'x-plain': 'plain' } }],
        urlSigningSecret: 'env:SIGN',
      }),
      env,
    )
    assert.equal(config.keys[0]?.secret, 'sk-caller')
    assert.equal(config.catalog.lines[0]?.apiKey, 'sk-up')
    assert.deepEqual(config.catalog.lines[0]?.headers, { 'x-extra': 'hush', 'x-plain': 'plain' })
    assert.equal(config.urlSigningSecret, env.SIGN)
  })

  it('that is not set, or empty, is a fault that names the variable; several are reported at once', () => {
    const source = configWith({
      keys: [
        { ...KEY, secret: 'env:NONE' },
        { ...KEY, id: 'key_2', secret: 'env:NONE' },
      ],
      lines: [{ ...LINE, apiKey: 'env:EMPTY', headers: { 'x-extra': 'env:NONE' } }],
      urlSigningSecret: 'env:NONE',
    })
    assert.deepEqual([...faultsOf(source, { EMPTY: '' })].sort(), [
      'keys[0].secret: the environment variable NONE is not set',
      'keys[1].secret: the environment variable NONE is not set',
      'lines[0].apiKey: the environment variable EMPTY is not set',
      'lines[0].headers.x-extra: the environment variable NONE is not set',
      'urlSigningSecret: the environment variable NONE is not set',
    ])
  })

  it('is validated by the value of the variable', () => {
    assert.deepEqual(faultsOf(configWith({ urlSigningSecret: 'env:SHORT' }), { SHORT: 'x' }).length, 1)
    assert.match(String(faultsOf(line({ apiKey: 'env:FILE' }), { FILE: 'sk-1\n' })), /^lines\[0\]\.apiKey: /)
  })

  it('is taken literally in members that are not secrets', () => {
    const config = loadConfig(configWith({ accounts: [{ id: 'acme', name: 'env:CALLER' }] }), env)
    assert.equal(config.accounts[0]?.name, 'env:CALLER')
  })

  it('leaves the given object unchanged', () => {
    const source = configWith({ keys: [{ ...KEY, secret: 'env:CALLER' }] })
    const copy = structuredClone(source)
    loadConfig(source, env)
    assert.deepEqual(source, copy)
  })
})
