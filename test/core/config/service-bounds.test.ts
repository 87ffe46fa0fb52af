import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../../support/any-config.ts'

import { configWith, KEY, LINE, MODEL } from './config.ts'
import { faultsOf } from './told-faults.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

describe('a retention period', () => {
  it('is a number of hours, days, months of 31 days, or years of 366 days', () => {
    const { retention } = loadConfig(configWith({ retention: { calls: '1h', charges: '2mo', usage: '3y' } }))
    assert.deepEqual(retention, { calls: HOUR, charges: 62 * DAY, usage: 3 * 366 * DAY })
    const kept = (calls: string) => loadConfig(configWith({ retention: { calls } })).retention.calls
    assert.deepEqual(['90d', '9999h', '10h', '1mo'].map(kept), [90 * DAY, 9999 * HOUR, 10 * HOUR, 31 * DAY])
  })

  it('is by default one month for calls, and two years and one month for usage', () => {
    assert.deepEqual(loadConfig(configWith()).retention, { calls: 30 * DAY, usage: 25 * 31 * DAY })
  })

  it('has no other form', () => {
    for (const calls of ['0d', '01d', '10000d', 'd', '1', '1w', '1m', ' 1d', '1d ', '1dd', '1.5d', '-1d', ''])
      assert.equal(faultsOf(configWith({ retention: { calls } })).length, 1, calls)
  })
})

/** A member, how it gets into a config, what fits, what does not. */
type Row = readonly [place: string, build: (value: unknown) => object, fit: unknown[], unfit: unknown[]]
const key = (member: string) => (value: unknown) => ({ keys: [{ ...KEY, [member]: value }] })
const line = (member: string) => (value: unknown) => ({ lines: [{ ...LINE, [member]: value }] })
const passed = (member: string) => (value: unknown) => ({
  passThrough: [{ path: '/v1/files', lines: ['line-1'], [member]: value }],
})
const priced = (member: string, unit: string) => (value: unknown) => passed(member)({ [unit]: value })
const exported = (members: object) => (to: unknown) => ({ retention: { export: { to, ...members } } })
const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, 'v']))
const S3 = ['s3://bucket', 's3://bucket/', 's3://b-1.x/a/b', 's3://0a']
const NO_S3 = ['s3://', 's3://b', 's3://Bucket', 's3://-b', 's3://b_c', 'xs3://bucket', 's3:bucket']

const ROWS: Row[] = [
  ['retention.export.to', exported({}), [...S3, 'file:x', 'file:/a b'], [...NO_S3, 'xfile:a', 'file:']],
  ['retention.export.to', exported({ region: 'eu' }), S3, ['file:x']],
  ['retention.export.to', exported({ endpoint: 'https://s3.test' }), S3, ['file:x']],
  [
    'retention.export.endpoint',
    (endpoint) => exported({ endpoint })('s3://bucket'),
    ['http://a', 'https://a:1/b'],
    ['ftp://a', 'xhttp://a', 'a', 7],
  ],
  ['retention.export.region', (region) => exported({ region })('s3://bucket'), ['e'], ['', 7]],
  [
    'cors.origins',
    (origin) => ({ cors: { origins: [origin] } }),
    ['*', 'https://app.example.com', 'http://a:8080', 'https://[::1]:1', 'https://xn--mnchen-3ya.de'],
    [
      'https://a/',
      'https://',
      'ftp://a',
      'xhttps://a',
      'https://a?b',
      'https://a b',
      'https://u@a',
      '**',
      // No browser writes an origin so.
      'https://App.example.com',
      'https://a:443',
      'http://a:80',
      'https://a:99999',
      'https://münchen.de',
      'https://*.example.com',
      '',
      7,
    ],
  ],
  ['cors.origins', (origins) => ({ cors: { origins } }), [['*', 'https://a']], [[], '*']],
  ['authority', (authority) => ({ authority }), ['database', 'config'], ['', 'both']],
  ['lookupsPerMinute', (lookupsPerMinute) => ({ lookupsPerMinute }), [1, 1e6], [0, 1.5, null]],
  [
    'bodyBudgetBytes',
    (bodyBudgetBytes) => ({ bodyLimitBytes: 2048, bodyBudgetBytes }),
    [2048, 2049],
    [2047, 0, -1, 2048.5],
  ],
  ['keys[0].name', key('name'), ['', 'x'.repeat(200)], ['x'.repeat(201), 7]],
  ['keys[0].note', key('note'), ['', 'x'.repeat(2000)], ['x'.repeat(2001), 7]],
  [
    'keys[0].tags',
    key('tags'),
    [{}, { team: 'a b' }, tags(16)],
    [tags(17), 'team', { team: '' }, { 'a=b': 'x' }],
  ],
  [
    'keys[0].tags',
    key('tags'),
    [{ ['n'.repeat(64)]: 'v'.repeat(64) }],
    [{ ['n'.repeat(65)]: 'v' }, { n: 'v'.repeat(65) }],
  ],
  [
    'keys[0].expiresAt',
    key('expiresAt'),
    ['2027-01-01T00:00:00Z', '2027-01-01T00:00:00+01:00', '2027-01-01T00:00:00.5Z'],
    ['2027-01-01T00:00:00', '2027', '', 7],
  ],
  ['lines[0].unsupported', line('unsupported'), ['refuse', 'drop'], ['', 'ignore']],
  ['lines[0].cost', line('cost'), [{}, { perWebSearch: '0.01' }], [{ perMinute: '1' }, '1']],
  ['passThrough[0].path', passed('path'), ['/v1/a'], ['v1/a', '', 7]],
  ['passThrough[0].sessionMs', passed('sessionMs'), [1, DAY], [0, DAY + 1, 1.5]],
  [
    'passThrough[0].methods',
    passed('methods'),
    [['GET'], ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']],
    [[], ['get'], ['OPTIONS'], 'GET'],
  ],
  [
    'passThrough[0].keeps',
    passed('keeps'),
    ['voice', 'a', `a${'_'.repeat(63)}`, 'a1_b'],
    ['', 'Voice', '1a', '_a', 'a-b', ' a', 'a ', `a${'b'.repeat(64)}`],
  ],
  ['passThrough[0].price.perRequest', priced('price', 'perRequest'), ['0', '1.5'], ['-1', 1]],
  ['passThrough[0].price.perMinute', priced('price', 'perMinute'), ['0', '1.5'], ['-1', 1]],
  ['passThrough[0].price.perImage', priced('price', 'perImage'), [], ['1']],
  ['passThrough[0].cost.perMinute', priced('cost', 'perMinute'), ['0'], ['-1']],
  ['models[0].id', (id) => ({ models: [MODEL, { ...MODEL, id }] }), ['a/b:c', '!', '~'], []],
]

describe('a member of the config about what the gateway keeps, counts and passes on', () => {
  for (const [i, [place, build, fit, unfit]] of ROWS.entries())
    it(`is within its bounds: ${place} (${i})`, () => {
      for (const value of fit)
        assert.deepEqual(faultsOf(configWith({ ...build(value) })), [], JSON.stringify(value))
      for (const value of unfit) {
        const [fault, ...others] = faultsOf(configWith({ ...build(value) }))
        assert.ok(fault?.startsWith(place), `${JSON.stringify(value)}: ${fault}`)
        assert.deepEqual(others, [])
      }
    })

  it('is filled in if it is missing', () => {
    const config = loadConfig(configWith({ passThrough: [{ path: '/v1/files', lines: ['line-1'] }] }))
    assert.deepEqual(
      [config.authority, config.lookupsPerMinute, config.bodyBudgetBytes, config.metrics, config.cors],
      ['database', 600, undefined, { labels: [], maxLabelValues: 100 }, undefined],
    )
    assert.deepEqual(config.passThrough, [
      { path: '/v1/files', lines: ['line-1'], price: {}, sessionMs: HOUR },
    ])
    assert.deepEqual([config.keys[0]?.tags, config.catalog.lines[0]?.unsupported], [{}, 'refuse'])
  })
})
