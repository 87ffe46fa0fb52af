import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isHeaderName, isHeaderValue } from '../../../lib/core/catalog/header-text.ts'
import {
  createCatalog,
  FREE,
  hasEndpoint,
  hashSecret,
  isAddressOrBlock,
  isTagName,
  isTagValue,
  type Line,
  type Model,
  metricLabelsFault,
  NO_TAGS,
  type Price,
  type PriceTier,
  priceAt,
  pricedBy,
  priceOn,
  tagsOf,
  windowOn,
} from '../../../lib/core/catalog/index.ts'

const model = (id: string, contextWindow?: number, price: Price = FREE) =>
  ({ id, contextWindow, price }) as Model
const line = (id: string, models: readonly string[], members: Partial<Line> = {}) =>
  ({ id, models: new Map(models.map((name) => [name, name])), price: {}, ...members }) as Line

describe('a catalogue', () => {
  const catalog = createCatalog(
    [model('a', 100), model('b'), model('c', 300), model('d')],
    [line('one', ['a', 'b']), line('two', ['a', 'b'], { contextWindow: 200 }), line('three', ['x'])],
  )

  it('has the lines of each model, in their order', () => {
    const ids = (of: string) => catalog.linesOf(of).map(({ id }) => id)
    assert.deepEqual(['a', 'b', 'c', 'x'].map(ids), [['one', 'two'], ['one', 'two'], [], []])
    assert.deepEqual([[...catalog.models.keys()], catalog.lines.length], [['a', 'b', 'c', 'd'], 3])
  })

  it('has the widest window of a model on any line, or the model’s own without lines', () => {
    assert.deepEqual(['a', 'b', 'c', 'd', 'x'].map(catalog.widestWindow), [
      200,
      Infinity,
      300,
      Infinity,
      undefined,
    ])
  })

  it('prefers the window of the line to that of the model', () => {
    assert.equal(windowOn(model('a', 100), line('one', [], { contextWindow: 50 })), 50)
    assert.equal(windowOn(model('a', 100), line('one', [])), 100)
    assert.equal(windowOn(model('a'), line('one', [])), undefined)
  })

  it('has an endpoint on the lines of its protocol, and on all lines that list no endpoints', () => {
    assert.equal(hasEndpoint({ protocol: 'openai' }, 'openai', 'videos'), true)
    assert.equal(
      hasEndpoint({ protocol: 'openai', endpoints: new Set(['rerank']) }, 'openai', 'videos'),
      false,
    )
    assert.equal(
      hasEndpoint({ protocol: 'openai', endpoints: new Set(['rerank']) }, 'openai', 'rerank'),
      true,
    )
    assert.equal(hasEndpoint({ protocol: 'anthropic' }, 'openai', 'videos'), false)
  })
})

describe('a price', () => {
  const FOLLOWING: [name: keyof typeof FREE, followed: keyof typeof FREE][] = [
    ['cachedInputPerMillion', 'inputPerMillion'],
    ['cacheWritePerMillion', 'inputPerMillion'],
    ['cacheWrite1hPerMillion', 'inputPerMillion'],
    ['audioInputPerMillion', 'inputPerMillion'],
    ['audioOutputPerMillion', 'outputPerMillion'],
    ['cacheWrite1hPerMillion', 'cacheWritePerMillion'],
  ]
  for (const [name, followed] of FOLLOWING)
    it(`follows its default price, unless it is given: ${name} and ${followed}`, () => {
      assert.equal(pricedBy(FREE, { [followed]: 7n })[name], 7n)
      assert.equal(pricedBy({ ...FREE, [name]: 3n }, { [followed]: 7n })[name], 3n)
      assert.equal(pricedBy(FREE, { [followed]: 7n, [name]: 0n })[name], 0n)
    })

  for (const [name, followed] of FOLLOWING)
    it(`keeps a given value, also one equal to its default: ${name} beside ${followed}`, () => {
      const model = pricedBy(FREE, { [followed]: 1n, [name]: 1n })
      const ofLine = pricedBy(model, { [followed]: 7n })
      assert.equal(ofLine[name], 1n)
      assert.equal(pricedBy(ofLine, { [followed]: 9n })[name], 1n)
      assert.equal(priceAt({ ...model, tiers: [{ aboveInputTokens: 10, [followed]: 4n }] }, 11)[name], 1n)
    })

  it('follows no other price', () => {
    const priced = pricedBy(FREE, { inputPerMillion: 7n })
    const changed = Object.entries(priced).filter(([, price]) => price !== 0n)
    assert.deepEqual(changed.map(([name]) => name).sort(), [
      'audioInputPerMillion',
      'cacheWrite1hPerMillion',
      'cacheWritePerMillion',
      'cachedInputPerMillion',
      'inputPerMillion',
    ])
  })

  it('is that of the line, for each member separately', () => {
    const base = { ...FREE, inputPerMillion: 5n, perRequest: 2n }
    const price = priceOn(model('a', 1, base), line('one', [], { price: { perRequest: 3n } }))
    assert.deepEqual([price.perRequest, price.inputPerMillion], [3n, 5n])
  })

  it('is that of the highest tier that the input exceeds, in any order of the tiers', () => {
    const tier = (aboveInputTokens: number, inputPerMillion: bigint) => ({
      aboveInputTokens,
      inputPerMillion,
    })
    const all = [tier(200, 3n), tier(100, 2n), tier(0, 1n)]
    for (const tiers of [all, all.toReversed()]) {
      const at = (tokens: number) => priceAt({ ...FREE, tiers }, tokens).inputPerMillion
      assert.deepEqual([0, 1, 100, 101, 200, 201].map(at), [0n, 1n, 1n, 2n, 2n, 3n])
    }
    const plain = { ...FREE }
    assert.equal(priceAt(plain, 1e9), plain)
    assert.equal('aboveInputTokens' in priceAt({ ...FREE, tiers: all }, 500), false)
    assert.equal(priceAt({ ...FREE, tiers: all }, 500).cachedInputPerMillion, 3n)
  })

  it('is that of the service tier, with precedence over all input tiers', () => {
    const tier = fc.record(
      {
        aboveInputTokens: fc.nat(3),
        serviceTier: fc.constantFrom('priority', 'flex'),
        inputPerMillion: fc.bigInt(1n, 99n),
      },
      { requiredKeys: ['inputPerMillion'] },
    )
    const place = ({ aboveInputTokens, serviceTier }: PriceTier) => `${aboveInputTokens} ${serviceTier}`
    fc.assert(
      fc.property(
        fc.uniqueArray(tier, { selector: place }),
        fc.nat(4),
        fc.constantFrom('priority', 'flex', 'fast', undefined),
        (tiers, tokens, served) => {
          const reached = tiers.filter(({ aboveInputTokens: above = -1 }) => tokens > above)
          const own = reached.filter(({ serviceTier }) => served !== undefined && serviceTier === served)
          const others = reached.filter(({ serviceTier }) => serviceTier === undefined)
          const [highest] = (own.length > 0 ? own : others).toSorted(
            (a, b) => (b.aboveInputTokens ?? -1) - (a.aboveInputTokens ?? -1),
          )
          const price = priceAt({ ...FREE, tiers }, tokens, served)
          assert.equal(price.inputPerMillion, highest?.inputPerMillion ?? 0n)
          assert.equal('serviceTier' in price, false)
        },
      ),
    )
  })
})

describe('a tag', () => {
  it('has a value of up to 64 bytes, without invisible characters', () => {
    for (const value of ['a', 'é'.repeat(32), 'x'.repeat(64), 'a b', '=,"\\'])
      assert.equal(isTagValue(value), true, value)
    for (const value of [
      '',
      'x'.repeat(65),
      'é'.repeat(33),
      ' a',
      'a ',
      'a\u0000',
      'a\u001fb',
      'a\u007fb',
      'a\ud800',
      '\n',
    ])
      assert.equal(isTagValue(value), false, JSON.stringify(value))
  })

  it('has a valid name, without surrounding spaces', () => {
    for (const name of ['team', 'a b', 'é']) assert.equal(isTagName(name), true)
    for (const name of ['', 'a=b', 'a,b', 'a"b', 'a\\b', ' a', 'x'.repeat(65)])
      assert.equal(isTagName(name), false, name)
  })

  it('is sorted with others by name, and an empty set is always the same object', () => {
    const tags = tagsOf([
      ['team', 'a'],
      ['env', 'b'],
      ['zone', 'c'],
    ])
    assert.equal(JSON.stringify(tags), '{"env":"b","team":"a","zone":"c"}')
    assert.ok(Object.isFrozen(tags) && Object.isFrozen(NO_TAGS))
    assert.equal(tagsOf([]), NO_TAGS)
  })

  it('may be a metric label, with a name that no other label has', () => {
    const unknown = 'must be of "account", "key", "user" and "tag:<name>"'
    const alike = 'must have names that differ in letters or digits'
    for (const labels of [[], ['account', 'key', 'user', 'tag:team'], ['tag:a', 'tag:b']])
      assert.equal(metricLabelsFault(labels), undefined)
    for (const labels of [['team'], ['tag:'], ['tag:a=b'], [7], ['accounts'], ['a key'], ['account', 'x']])
      assert.equal(metricLabelsFault(labels), unknown)
    for (const labels of [
      ['key', 'key'],
      ['tag:a-b', 'tag:a.b'],
      ['tag:a--b', 'tag:a..b'],
    ])
      assert.equal(metricLabelsFault(labels), alike)
    assert.equal(metricLabelsFault(['tag:a-b', 'tag:a--b']), undefined)
  })
})

describe('a text of the catalogue', () => {
  it('can be an address or a block of addresses', () => {
    for (const text of ['10.0.0.1', '::1', '10.0.0.0/8', 'fd00::/8'])
      assert.equal(isAddressOrBlock(text), true)
    for (const text of ['', 'localhost', '10.0.0.0/33', '1.2.3.4.5'])
      assert.equal(isAddressOrBlock(text), false)
  })

  it('can be the name of a header, or its value', () => {
    for (const name of ['x-a', 'A_1', "!#$%&'*+.^`|~-"]) assert.equal(isHeaderName(name), true)
    for (const name of ['', 'a b', 'a:', 'é', 'a\n', '(a']) assert.equal(isHeaderName(name), false)
    for (const value of ['', 'a b\t~', '\x80\xff']) assert.equal(isHeaderValue(value), true)
    for (const value of ['a\n', 'a\r', '\u0100', '\x7f', 'a\x00']) assert.equal(isHeaderValue(value), false)
  })

  it('can be a secret, of which only the hash is kept', () => {
    assert.equal(hashSecret('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})
