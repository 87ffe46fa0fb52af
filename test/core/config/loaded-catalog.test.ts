import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../../support/any-config.ts'

import { configWith, LINE, MODEL } from './config.ts'
import { PRICE_UNITS } from './price-units.ts'

const lineOf = (extra: object, env: Record<string, string> = {}) =>
  loadConfig(configWith({ lines: [{ ...LINE, ...extra }] }), env).catalog.lines[0] ?? assert.fail()
const modelOf = (extra: object) =>
  loadConfig(configWith({ models: [{ ...MODEL, ...extra }] })).catalog.models.get('chat') ?? assert.fail()

describe('a line of the catalogue', () => {
  it('has all members of its config', () => {
    const line = lineOf({
      apiKey: 'sk-up',
      baseUrl: 'HTTP://Api.Example.com:80/a/b/',
      region: 'eu',
      endpoints: ['responses', 'embeddings'],
      enabled: false,
      priority: -3,
      weight: 0.5,
      models: { chat: 'up' },
      timeouts: { connectMs: 1, firstByteMs: 2, idleMs: 3, totalMs: 4 },
      circuit: { errorPercent: 1, minimumCalls: 2, windowMs: 3, resetMs: 4 },
      headers: { 'X-A': '1', 'x-b': '' },
      features: ['json', 'vision'],
      contextWindow: 9,
      unsupported: 'drop',
      proxy: 'http://proxy:1',
      tls: {},
    })
    assert.deepEqual(line, {
      id: 'line-1',
      provider: 'openai',
      protocol: 'openai',
      origin: 'http://api.example.com',
      basePath: '/a/b',
      apiKey: 'sk-up',
      region: 'eu',
      endpoints: new Set(['responses', 'embeddings']),
      enabled: false,
      priority: -3,
      weight: 0.5,
      models: new Map([['chat', 'up']]),
      timeouts: { connectMs: 1, firstByteMs: 2, idleMs: 3, totalMs: 4 },
      circuit: { errorPercent: 1, minimumCalls: 2, windowMs: 3, resetMs: 4 },
      headers: { 'x-a': '1', 'x-b': '' },
      price: {},
      cost: undefined,
      features: new Set(['json', 'vision']),
      contextWindow: 9,
      unsupported: 'drop',
      proxy: 'http://proxy:1',
      tls: {},
    })
    assert.equal(lineOf({ baseUrl: 'https://a' }).basePath, '')
  })

  it('has no differences from its protocol unless the config sets them', () => {
    for (const member of ['credential', 'proxy', 'tls', 'paths', 'query', 'body'])
      assert.equal(member in lineOf({}), false, member)
    for (const [member, empty] of [
      ['query', {}],
      ['body', {}],
    ] as const)
      assert.equal(member in lineOf({ [member]: empty }), false, member)
  })

  it('has a path for each endpoint with a path of its own', () => {
    const both = (path: string) => ({ plain: path, stream: path })
    const own = lineOf({
      path: { embeddings: '/e/{endpoint}/{endpoint}', rerank: { plain: '/p/{endpoint}', stream: '/s' } },
    })
    assert.deepEqual(
      own.paths,
      new Map([
        ['embeddings', both('/e/embeddings/embeddings')],
        ['rerank', { plain: '/p/rerank', stream: '/s' }],
      ]),
    )
    const all = lineOf({ path: '/{model}/{endpoint}' }).paths
    assert.deepEqual(all?.get('images/edits'), both('/{model}/images/edits'))
    assert.equal(all?.has('videos'), false)
    assert.deepEqual([...(lineOf({ protocol: 'ark', path: '/a' }).paths?.keys() ?? [])], [])
  })

  it('has the kind of account of its key, with the members of that kind', () => {
    const oauth = { tokenUrl: 'https://login.example.com/t', clientId: 'env:ID', clientSecret: 'env:SECRET' }
    const env = { ID: 'me', SECRET: 'hush', GOOGLE: '{"type":"service_account"}' }
    const account = (apiKey: object) => {
      const line = lineOf({ apiKey }, env)
      assert.equal(line.apiKey, undefined)
      return line.credential
    }
    const told = { tokenUrl: oauth.tokenUrl, clientId: 'me', clientSecret: 'hush' }
    assert.deepEqual(account({ oauth }), { kind: 'oauth', ...told, scope: undefined })
    assert.deepEqual(account({ oauth: { ...oauth, scope: 's' } }), { kind: 'oauth', ...told, scope: 's' })
    assert.deepEqual(account({ google: { credentials: 'env:GOOGLE' } }), {
      kind: 'google',
      credentials: { type: 'service_account' },
    })
    assert.deepEqual(account({ aws: { region: 'eu-1', service: 's-3' } }), {
      kind: 'aws',
      region: 'eu-1',
      service: 's-3',
    })
  })
})

describe('the prices of the catalogue', () => {
  const written = Object.fromEntries(PRICE_UNITS.map((unit, i) => [unit, `${i}.5`]))
  const nanos = Object.fromEntries(
    PRICE_UNITS.map((unit, i) => [unit, BigInt(i) * 1_000_000_000n + 500_000_000n]),
  )

  it('are the prices of the config in billionths, for each unit', () => {
    const { price } = modelOf({ price: written })
    for (const unit of PRICE_UNITS) assert.equal(price[unit], nanos[unit], unit)
    assert.deepEqual(lineOf({ price: written }).price, nanos)
    const { cost } = lineOf({ cost: written })
    for (const unit of PRICE_UNITS) assert.equal(cost?.[unit], nanos[unit], unit)
  })

  it('are zero on a model without prices, and default to those of the model on a line', () => {
    const { price } = modelOf({})
    for (const unit of PRICE_UNITS) assert.equal(price[unit], 0n, unit)
    assert.deepEqual(lineOf({}).price, {})
    assert.equal(lineOf({ cost: {} }).cost?.perRequest, 0n)
  })

  it('may differ above an input size, and in a service tier', () => {
    const tiers = [
      { serviceTier: 'priority', inputPerMillion: '2' },
      { aboveInputTokens: 200_000, inputPerMillion: '3' },
      { aboveInputTokens: 9, perRequest: '1' },
    ]
    const expected = [
      { serviceTier: 'priority', inputPerMillion: 2_000_000_000n },
      { aboveInputTokens: 200_000, inputPerMillion: 3_000_000_000n },
      { aboveInputTokens: 9, perRequest: 1_000_000_000n },
    ]
    assert.deepEqual(lineOf({ price: { tiers } }).price, { tiers: expected })
    assert.equal('tiers' in lineOf({ price: {} }).price, false)
    const model = modelOf({ price: { inputPerMillion: '1', tiers } })
    assert.equal(model.price.tiers?.length, 3)
  })
})

describe('a model of the catalogue', () => {
  it('has all members of its config', () => {
    const { price, ...model } = modelOf({ contextWindow: 8, maxOutputTokens: 4, features: ['tools'] })
    assert.equal(price.perRequest, 0n)
    assert.deepEqual(model, {
      id: 'chat',
      kind: 'chat',
      contextWindow: 8,
      maxOutputTokens: 4,
      features: new Set(['tools']),
    })
    const bare = modelOf({ kind: 'video' })
    assert.deepEqual(
      [bare.kind, bare.contextWindow, bare.maxOutputTokens, bare.features],
      ['video', undefined, undefined, undefined],
    )
  })
})
