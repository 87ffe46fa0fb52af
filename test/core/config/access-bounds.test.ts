import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ACCOUNT, configWith, KEY, LINE, MODEL } from './config.ts'
import { faultsOf } from './told-faults.ts'

const line = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })
const oauth = { tokenUrl: 'https://login.test/t', clientId: 'a', clientSecret: 'b', scope: 'c' }
const CERT = '-----BEGIN CERTIFICATE-----\nx'

/** Addresses that are none over http, by their beginning, their end, or altogether. */
const NO_URLS = ['xhttp://a', 'httpx://a', 'shttps://a', 'httpsx://a', 'ftp://a', 'a', '', 7]
const NO_WORDS = ['', 'US', 'a b', ' a', 'a ', 'a\n', 'é', 'a_b', 7, null]

const ROWS: [place: string, build: (value: unknown) => object, fit: unknown[], unfit: unknown[]][] = [
  ['lines[0].baseUrl', (baseUrl) => ({ baseUrl }), ['http://a', 'https://a/b'], NO_URLS],
  ['lines[0].proxy', (proxy) => ({ proxy }), ['http://a', 'https://u:p@a:1', false], [...NO_URLS, true]],
  [
    'lines[0].apiKey.oauth.tokenUrl',
    (tokenUrl) => ({ apiKey: { oauth: { ...oauth, tokenUrl } } }),
    ['http://a', 'https://a/b?c'],
    NO_URLS,
  ],
  ...(['clientId', 'clientSecret', 'scope'] as const).map((member): (typeof ROWS)[number] => [
    `lines[0].apiKey.oauth.${member}`,
    (value) => ({ apiKey: { oauth: { ...oauth, [member]: value } } }),
    ['x'],
    ['', 7],
  ]),
  ['lines[0].apiKey.aws.region', (region) => ({ apiKey: { aws: { region } } }), ['us-east-1', '0'], NO_WORDS],
  [
    'lines[0].apiKey.aws.service',
    (service) => ({ apiKey: { aws: { region: 'eu', service } } }),
    ['bedrock', 's-3', undefined],
    NO_WORDS,
  ],
  [
    'lines[0].apiKey.google.credentials',
    (credentials) => ({ apiKey: { google: { credentials } } }),
    ['{}', '{"a":1}', undefined],
    ['', '[]', '"a"', 'null', '{', 7],
  ],
  [
    'lines[0].apiKey',
    (apiKey) => ({ apiKey }),
    ['k', 'é~\t'],
    ['a\nb', 'a\rb', 'a\u0000', '日', {}, { other: {} }, [], 7],
  ],
  ['lines[0].query', (query) => ({ query }), [{}, { a: '' }], [{ '': 'a' }, { a: 1 }, ['a'], 'a']],
  ['lines[0].body', (body) => ({ body }), [{}, { a: [null, 1, { b: true }] }], [{ '': 1 }, [], 'a']],
  ['lines[0].models', (models) => ({ models }), [{}, { chat: 'x' }], [{ chat: '' }, { '': 'x' }, ['chat']]],
  [
    'lines[0].tls',
    (tls) => ({ tls }),
    [{}, undefined],
    [{ cert: CERT }, { key: CERT }, { cert: CERT, key: CERT }, 'x'],
  ],
  ['lines[0].tls.cert', (cert) => ({ tls: { cert, key: CERT } }), [], ['package.json']],
]

describe('how a line is reached', () => {
  for (const [place, build, fit, unfit] of ROWS)
    it(`is within its bounds: ${place}`, () => {
      for (const value of fit) assert.deepEqual(faultsOf(line(build(value))), [], JSON.stringify(value))
      for (const value of unfit) {
        const faults = faultsOf(line(build(value)))
        assert.ok(faults.length > 0, JSON.stringify(value))
        const outer = place.split('.').slice(0, 2).join('.')
        for (const fault of faults) assert.ok(fault.startsWith(outer), `${JSON.stringify(value)}: ${fault}`)
      }
    })

  it('is reported once for each file, with the fault of that file', () => {
    const [together] = faultsOf(line({ tls: { cert: CERT } }))
    assert.equal(together, 'lines[0].tls: needs "cert" and "key" together')
    assert.deepEqual(faultsOf(line({ tls: { ca: 'package.json' } })), [
      'lines[0].tls.ca: must be the path of a PEM file',
    ])
    assert.match(
      faultsOf(line({ tls: { cert: CERT, key: CERT } })).join(),
      /^lines\[0\]\.tls: cannot be used \(\w+\)$/,
    )
    // A missing file is the only fault that is reported.
    assert.equal(faultsOf(line({ tls: { ca: '/nowhere', cert: CERT } })).length, 1)
  })

  it('names a path as it is, even if it contains the prefix of a secret', () => {
    assert.deepEqual(faultsOf(line({ tls: { ca: './file:x' } })), [
      'lines[0].tls.ca: the file ./file:x cannot be read (ENOENT)',
    ])
    assert.match(faultsOf(line({ tls: { ca: './env:x' } })).join(), /the file \.\/env:x cannot be read/)
  })
})

describe('an item of a list that is not an object', () => {
  const lists = {
    accounts: ACCOUNT,
    keys: KEY,
    models: MODEL,
    lines: LINE,
    passThrough: { path: '/v1/x', model: 'chat' },
  }
  for (const [list, item] of Object.entries(lists))
    it(`is reported as one fault, beside those of other items: ${list}`, () => {
      for (const odd of [7, null, 'x', []]) {
        const faults = faultsOf(configWith({ [list]: [item, odd] }))
        assert.equal(faults.length, 1, faults.join('\n'))
        assert.ok(faults[0]?.startsWith(`${list}[1]: must be of type object`), faults[0])
      }
    })
})
