import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { ACCOUNT, configWith, KEY, LINE, MODEL } from './config.ts'
import { PRICE_UNITS } from './price-units.ts'

function faultsOf(source: unknown, env: Record<string, string> = {}): readonly string[] {
  try {
    loadConfig(source, env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.faults
  }
}

const top = (extra: object) => configWith({ ...extra })
const account = (extra: object) => configWith({ accounts: [{ ...ACCOUNT, ...extra }] })
const key = (extra: object) => configWith({ keys: [{ ...KEY, ...extra }] })
const model = (extra: object) => configWith({ models: [{ ...MODEL, ...extra }] })
const line = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })

const DAY = 86_400_000
const LONG = 'x'.repeat(200)
/** Amounts that 64 bits hold, and those that they do not. */
const [MOST, BEYOND] = ['9223372035.99', '9223372036']
const NO_TEXTS = ['', 'a b', 'é', 7, null]

/** Where a member stands, how it gets there, values that fit, values that do not. */
type Row = [place: string, build: (value: unknown) => unknown, fit: unknown[], unfit: unknown[]]
const nested = (build: (extra: object) => unknown, outer: string, member: string) => (value: unknown) =>
  build({ [outer]: { [member]: value } })
const plain = (build: (extra: object) => unknown, member: string) => (value: unknown) =>
  build({ [member]: value })

const ROWS: Row[] = [
  ['region', plain(top, 'region'), ['eu', LONG], [...NO_TEXTS, `${LONG}x`]],
  ['bodyLimitBytes', plain(top, 'bodyLimitBytes'), [1024, 1e9], [1023, 1024.5, -1, '1024']],
  ['onStoreError', plain(top, 'onStoreError'), ['local', 'refuse'], ['hold', null]],
  ['onLedgerAway', plain(top, 'onLedgerAway'), ['hold', 'deliver'], ['local', null]],
  [
    'trustProxy',
    plain(top, 'trustProxy'),
    [false, true, 0, 3, 'loopback', ['linklocal', '::1']],
    [-1, 1.5, null],
  ],
  [
    'urlSigningSecret',
    plain(top, 'urlSigningSecret'),
    ['x'.repeat(16), ['x'.repeat(16), 'y'.repeat(16)]],
    ['x'.repeat(15), 7, [], ['x'.repeat(15)]],
  ],
  [
    'metrics.labels',
    (labels) => configWith({ metrics: { labels } }),
    [[], ['account', 'key', 'user', 'tag:team', 'tag:Team']],
    [['accounts'], ['user', 'user'], ['tag:'], ['tag:a=b'], ['tag:a-b', 'tag:a_b'], 'user', [7]],
  ],
  [
    'retention.charges',
    (charges) => configWith({ retention: { charges } }),
    ['1mo', '31d', '25mo', '7y'],
    ['30d', '700h', '0mo', 31, null],
  ],
  [
    'retention.export.to',
    (to) => configWith({ retention: { export: { to } } }),
    ['file:archive', 'file:/var/lib/gateway/archive'],
    ['archive', 'file:', '', null],
  ],
  [
    'metrics.maxLabelValues',
    (maxLabelValues) => configWith({ metrics: { maxLabelValues } }),
    [1, 10_000],
    [0, 10_001, 1.5],
  ],
  ['$schema', plain(top, '$schema'), ['./x.json'], [7]],
  ['accounts[0].name', plain(account, 'name'), ['', 'Acme'], [7]],
  [
    'accounts[0].balance',
    plain(account, 'balance'),
    ['-1', '0', '1.000000001', MOST],
    ['1,5', '', BEYOND, `-${BEYOND}`],
  ],
  ['accounts[0].regions', plain(account, 'regions'), [[], ['eu']], ['eu']],
  ['accounts[0].lineRegions', plain(account, 'lineRegions'), [[], ['eu']], ['eu']],
  ...['rpm', 'tpm', 'concurrency'].map(
    (member): Row => [
      `accounts[0].limits.${member}`,
      nested(account, 'limits', member),
      [1, 1_000_000, null],
      [0, 1.5, '1'],
    ],
  ),
  ['keys[0].id', plain(key, 'id'), ['a', LONG], [...NO_TEXTS, `${LONG}x`]],
  ['keys[0].secret', plain(key, 'secret'), ['a', 'x'.repeat(512)], [...NO_TEXTS, 'x'.repeat(513)]],
  ['keys[0].enabled', plain(key, 'enabled'), [true, false], [1, null]],
  ['keys[0].quota', plain(key, 'quota'), ['0', '1.5', MOST], ['-0.1', 1, BEYOND]],
  ['keys[0].allowModels', plain(key, 'allowModels'), [[], ['*', 'a']], ['*', null]],
  ['keys[0].allowIps', plain(key, 'allowIps'), [[], ['::1', '10.0.0.0/8']], ['::1', null]],
  ...['rpm', 'tpm'].map(
    (member): Row => [`keys[0].limits.${member}`, nested(key, 'limits', member), [1, null], [0, 1.5, '1']],
  ),
  [
    'models[0].kind',
    plain(model, 'kind'),
    ['chat', 'embedding', 'image', 'rerank', 'video'],
    ['audio', null],
  ],
  ['models[0].contextWindow', plain(model, 'contextWindow'), [1, 1e6], [0, 1.5, null]],
  ['models[0].maxOutputTokens', plain(model, 'maxOutputTokens'), [1, 1e6], [0, 1.5, null]],
  [
    'models[0].features',
    plain(model, 'features'),
    [[], ['stream', 'tools', 'vision', 'json', 'reasoning']],
    ['stream', null],
  ],
  ...PRICE_UNITS.map(
    (unit): Row => [
      `models[0].price.${unit}`,
      nested(model, 'price', unit),
      ['0', '1', MOST],
      ['-1', 1, BEYOND],
    ],
  ),
  ['lines[0].apiKey', plain(line, 'apiKey'), ['k'], ['', 7]],
  ['lines[0].region', plain(line, 'region'), ['eu'], NO_TEXTS],
  ['lines[0].protocol', plain(line, 'protocol'), ['openai', 'anthropic', 'ark'], ['OpenAI', null]],
  ['lines[0].enabled', plain(line, 'enabled'), [true, false], ['no', null]],
  ['lines[0].priority', plain(line, 'priority'), [-5, 0, 5], [0.5, '1']],
  ['lines[0].weight', plain(line, 'weight'), [0, 0.5, 1_000_000], [-0.1, 1_000_001]],
  ['lines[0].baseUrl', plain(line, 'baseUrl'), ['http://x', 'https://x/v1'], ['ws://x', 'x', 7]],
  ['lines[0].headers', plain(line, 'headers'), [{}, { 'x-a': '\t~é' }], [7, 'x', ['a'], null]],
  ['lines[0].contextWindow', plain(line, 'contextWindow'), [1], [0, 1.5]],
  ['lines[0].features', plain(line, 'features'), [[], ['stream']], ['stream']],
  ...['connectMs', 'firstByteMs', 'idleMs', 'totalMs'].map(
    (clock): Row => [
      `lines[0].timeouts.${clock}`,
      nested(line, 'timeouts', clock),
      [1, DAY],
      [0, DAY + 1, 1.5],
    ],
  ),
  ['lines[0].circuit.errorPercent', nested(line, 'circuit', 'errorPercent'), [1, 50.5, 100], [0.9, 100.1]],
  ['lines[0].circuit.minimumCalls', nested(line, 'circuit', 'minimumCalls'), [1, 100], [0, 1.5]],
  ['lines[0].circuit.windowMs', nested(line, 'circuit', 'windowMs'), [1, DAY], [0, DAY + 1]],
  ['lines[0].circuit.resetMs', nested(line, 'circuit', 'resetMs'), [1, DAY], [0, DAY + 1]],
  [
    'routing.strategy',
    nested(top, 'routing', 'strategy'),
    ['priority', 'weighted', 'latency', 'price', 'affinity'],
    ['cheapest', null],
  ],
  ['routing.maxAttempts', nested(top, 'routing', 'maxAttempts'), [1, 20], [0, 21, 1.5]],
  ['routing.onDisconnect', nested(top, 'routing', 'onDisconnect'), ['abort', 'drain'], ['wait', null]],
  ['routing.drainMs', nested(top, 'routing', 'drainMs'), [1, DAY], [0, DAY + 1]],
]

describe('a member of the config within its bounds', () => {
  for (const [place, build, fit, unfit] of ROWS) {
    it(place, () => {
      for (const value of fit) {
        const faults = faultsOf(build(value)).filter((fault) => fault.startsWith(place))
        assert.deepEqual(faults, [], JSON.stringify(value))
      }
      for (const value of unfit) {
        const faults = faultsOf(build(value))
        assert.ok(
          faults.some((fault) => fault.startsWith(place)),
          `${JSON.stringify(value)}: ${faults}`,
        )
      }
    })
  }

  it('must be known at every place', () => {
    for (const [place, build] of [
      ['', top],
      ['accounts[0].', account],
      ['keys[0].', key],
      ['models[0].', model],
      ['lines[0].', line],
    ] as const)
      assert.deepEqual(faultsOf(build({ unknown: 1 })), [`${place}unknown: is not a known member`])
    for (const [place, build] of [
      ['accounts[0].limits', account],
      ['keys[0].limits', key],
      ['models[0].price', model],
      ['lines[0].price', line],
      ['lines[0].timeouts', line],
      ['lines[0].circuit', line],
      ['routing', top],
    ] as const) {
      const member = place.split('.').at(-1) as string
      assert.deepEqual(faultsOf(build({ [member]: { unknown: 1 } })), [
        `${place}.unknown: is not a known member`,
      ])
    }
  })
})

describe('a secret that stands in the environment', () => {
  const source = configWith({
    urlSigningSecret: 'env:SIGNING',
    keys: [{ ...KEY, secret: 'env:KEY' }],
    lines: [{ ...LINE, apiKey: 'env:LINE', headers: { 'X-Org': 'env:ORG', 'x-plain': 'plain' } }],
  })
  const env = { SIGNING: 'x'.repeat(16), KEY: 'sk-1', LINE: 'sk-up', ORG: 'org' }

  it('is replaced by its value', () => {
    const { urlSigningSecret, keys, catalog } = loadConfig(source, env)
    assert.deepEqual(
      [urlSigningSecret, keys[0]?.secret, catalog.lines[0]?.apiKey, catalog.lines[0]?.headers],
      [env.SIGNING, 'sk-1', 'sk-up', { 'x-org': 'org', 'x-plain': 'plain' }],
    )
    assert.equal((source.keys as { secret: string }[])[0]?.secret, 'env:KEY', 'the source stays as it is')
  })

  it('is reported by its name if it is not set, each one separately', () => {
    for (const environment of [{}, { SIGNING: '', KEY: '', LINE: '', ORG: '' }])
      assert.deepEqual(faultsOf(source, environment), [
        'urlSigningSecret: the environment variable SIGNING is not set',
        'keys[0].secret: the environment variable KEY is not set',
        'lines[0].apiKey: the environment variable LINE is not set',
        'lines[0].headers.X-Org: the environment variable ORG is not set',
      ])
  })
})

it('a control character in a name does not break the line of its fault', () => {
  assert.deepEqual(faultsOf(configWith({ 'a\nb\u2028c\u0007': 1 })), [
    'a\\u000ab\\u2028c\\u0007: is not a known member',
  ])
})
