import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ACCOUNT, configWith, KEY, LINE, MODEL } from './config.ts'
import { faultsOf } from './told-faults.ts'

const line = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })

describe('the words of a fault', () => {
  const rows: [source: object, fault: string][] = [
    [line({ provider: undefined }), 'lines[0].provider: is missing; it must be of type string'],
    [line({ priority: 'x' }), 'lines[0].priority: must be of type number, not string'],
    [line({ models: ['chat'] }), 'lines[0].models: must be of type object, not array'],
    [line({ models: undefined }), 'lines[0].models: is missing; it must be of type object'],
    [line({ protocol: 'smtp' }), 'lines[0].protocol: must be one of "openai"|"anthropic"|"ark"'],
    [line({ weight: -1 }), 'lines[0].weight: must be at least 0'],
    [line({ weight: 2e6 }), 'lines[0].weight: must be at most 1000000'],
    [line({ a: 1 }), 'lines[0].a: is not a known member'],
    [line({ baseUrl: 'x' }), 'lines[0].baseUrl: must be an http(s) URL'],
    [line({ apiKey: '' }), 'lines[0].apiKey: must have at least one character'],
    [
      line({ apiKey: 7 }),
      'lines[0].apiKey: must be a key, or one of { "oauth": { "tokenUrl", "clientId", "clientSecret", "scope" } }, { "google": { "credentials" } }, { "aws": { "region", "service" } }',
    ],
    [line({ path: 'x' }), 'lines[0].path: must begin with "/"'],
    [configWith({ models: [] }), 'models: must have at least one item'],
  ]
  for (const [i, [source, fault]] of rows.entries())
    it(`say what the member must be: ${fault.slice(0, 60)} (${i})`, () => {
      assert.deepEqual(
        faultsOf(source).filter((each) => !each.includes('there is no')),
        [fault],
      )
    })
})

describe('all faults of a config', () => {
  it('are sorted by kind: the members, then names by their lists, then secrets, then variables', () => {
    const source = configWith({
      colour: 'red',
      trustProxy: 'nowhere',
      bodyLimitBytes: 2048,
      bodyBudgetBytes: 1,
      accounts: [ACCOUNT, ACCOUNT],
      keys: [
        { ...KEY, account: 'nobody', allowIps: ['here', '::1', 'there'] },
        { ...KEY, secret: 'env:NONE' },
      ],
      models: [
        {
          ...MODEL,
          price: { tiers: [{ aboveInputTokens: 1 }, { aboveInputTokens: 2 }, { aboveInputTokens: 1 }] },
        },
        MODEL,
      ],
      lines: [
        {
          ...LINE,
          baseUrl: 'https://u@x/?a',
          endpoints: ['messages', 'videos'],
          path: { videos: '/a' },
          models: { none: 'x' },
          headers: { 'a b': 'c', te: 'x\n' },
          apiKey: 'a\nb',
          cost: { tiers: [{ aboveInputTokens: 5 }, { aboveInputTokens: 5 }] },
        },
        LINE,
      ],
      passThrough: [
        { path: '/v1/models', lines: ['gone'], model: 'none' },
        { path: '/v1/models', model: 'chat' },
      ],
    })
    const own = 'openai" line'
    assert.deepEqual(
      faultsOf(source, { HTTPS_PROXY: 'ftp://x' }).map((fault) => fault.replace(/; it can .*$/, '')),
      [
        'colour: is not a known member',
        'accounts[1].id: is the same as that of accounts[0]',
        'keys[1].id: is the same as that of keys[0]',
        'models[1].id: is the same as that of models[0]',
        'lines[1].id: is the same as that of lines[0]',
        'passThrough[1].path: is the same as that of passThrough[0]',
        'models[0].price.tiers[2].aboveInputTokens: is the same as that of models[0].price.tiers[0]',
        'lines[0].cost.tiers[1].aboveInputTokens: is the same as that of lines[0].cost.tiers[0]',
        'keys[0].account: there is no account "nobody"',
        'keys[0].allowIps[0]: "here" is neither an address nor a CIDR block',
        'keys[0].allowIps[2]: "there" is neither an address nor a CIDR block',
        'lines[0].baseUrl: must not have a query, a fragment or credentials',
        `lines[0].endpoints[0]: no "${own} has "messages"`,
        `lines[0].path.videos: no "${own} has a path of its own for it`,
        'lines[0].models.none: there is no model "none"',
        'lines[0].headers.a b: is not a header name',
        'lines[0].headers.te: belongs to the connection and cannot be set',
        'lines[0].headers.te: is not a header value',
        'lines[0].apiKey: has characters that a header cannot hold, such as a line break',
        'trustProxy: "nowhere" is neither an address nor a CIDR block',
        'bodyBudgetBytes: must be at least bodyLimitBytes',
        'passThrough[0].path: takes requests for /v1/models, which the gateway answers itself',
        'passThrough[0]: needs either "lines" or "model"',
        'passThrough[0].lines[0]: there is no line "gone"',
        'passThrough[0].model: there is no model "none"',
        'passThrough[1].path: takes requests for /v1/models, which the gateway answers itself',
        'keys[1].secret: the environment variable NONE is not set',
        'HTTPS_PROXY: must be the http(s) URL of a proxy',
      ],
    )
  })

  it('contain no missing references to a list that cannot be read', () => {
    const named = { keys: [{ ...KEY, account: 'nobody' }], lines: [{ ...LINE, models: { none: 'x' } }] }
    const passThrough = [{ path: '/v1/files', lines: ['gone'] }]
    const unread = (lists: object) =>
      faultsOf(configWith({ ...named, passThrough, ...lists })).map((f) => f.split(':')[0])
    assert.deepEqual(unread({}), ['keys[0].account', 'lines[0].models.none', 'passThrough[0].lines[0]'])
    assert.deepEqual(unread({ accounts: 7 }), ['accounts', 'lines[0].models.none', 'passThrough[0].lines[0]'])
    assert.deepEqual(unread({ accounts: [{ id: 7 }] }), [
      'accounts[0].id',
      'lines[0].models.none',
      'passThrough[0].lines[0]',
    ])
    assert.deepEqual(unread({ accounts: [] }), [
      'keys[0].account',
      'lines[0].models.none',
      'passThrough[0].lines[0]',
    ])
    assert.deepEqual(unread({ models: [] }), ['models', 'keys[0].account', 'passThrough[0].lines[0]'])
    assert.deepEqual(unread({ lines: [] }), ['lines', 'keys[0].account'])
  })

  it('are reported for each header of the connection, in any case', () => {
    const names = [
      'connection',
      'content-length',
      'expect',
      'keep-alive',
      'te',
      'trailer',
      'transfer-encoding',
      'upgrade',
    ]
    for (const name of [...names, ...names.map((each) => each.toUpperCase())])
      assert.deepEqual(faultsOf(line({ headers: { [name]: '1' } })), [
        `lines[0].headers.${name}: belongs to the connection and cannot be set`,
      ])
    assert.deepEqual(faultsOf(line({ headers: { 'x-te': '1', host: 'a', accept: 'b' } })), [])
  })

  it('are reported for each unusable address of a proxy', () => {
    const trusted = (trustProxy: unknown) => faultsOf(configWith({ trustProxy }))
    for (const fit of [
      'loopback',
      'linklocal, uniquelocal',
      ' ::1 ,10.0.0.0/8',
      [' loopback ', '1.2.3.4'],
      3,
      true,
    ])
      assert.deepEqual(trusted(fit), [], String(fit))
    assert.deepEqual(trusted('a,loopback,b'), [
      'trustProxy: "a" is neither an address nor a CIDR block',
      'trustProxy: "b" is neither an address nor a CIDR block',
    ])
    assert.deepEqual(trusted(['Loopback', '1.2.3.x']).length, 2)
  })
})

describe('the path of a line', () => {
  it('consists of valid path characters and the two placeholders', () => {
    const at = (path: unknown) => faultsOf(line({ path })).map((fault) => fault.split(':')[0])
    for (const path of [
      '/',
      '/{model}',
      '/a/{endpoint}:go',
      "/a.~!$&'()*+,;=:@-_",
      '/%2F%2f%aB',
      '/{model}{endpoint}',
    ])
      assert.deepEqual(at(path), [], path)
    for (const path of [
      'a',
      '/a?b',
      '/a#b',
      '/a b',
      '/%2',
      '/%zz',
      '/{',
      '/}',
      '/{x}',
      '/{}',
      '/{MODEL}',
      '/é',
      '/"',
    ])
      assert.deepEqual(at(path), ['lines[0].path'], path)
    assert.deepEqual(faultsOf(line({ path: '/{model}/{x}/{y}' })), [
      'lines[0].path: has {x}; it can have {model} and {endpoint}',
    ])
  })

  it('cannot be that of tasks, which have their own', () => {
    const of = (protocol: string, endpoint: string) =>
      faultsOf(line({ protocol, path: { [endpoint]: '/a' } })).map((fault) =>
        fault.replace(/; it can be .*$/, ''),
      )
    assert.deepEqual(of('openai', 'embeddings'), [])
    for (const [protocol, endpoint] of [
      ['openai', 'videos'],
      ['ark', 'contents/generations/tasks'],
      ['anthropic', 'embeddings'],
    ] as const)
      assert.deepEqual(of(protocol, endpoint), [
        `lines[0].path.${endpoint}: no "${protocol}" line has a path of its own for it`,
      ])
  })
})
