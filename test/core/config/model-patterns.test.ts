import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callersNames, createCatalog, upstreamName } from '../../../lib/core/catalog/index.ts'
import { ConfigError, ConfigWarnings } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'

const LINE = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://u/v1' }
const model = (id: string, more: object = {}) => ({ id, kind: 'chat', ...more })
const configOf = (models: readonly object[], names: object, more: object = {}) => ({
  models,
  lines: [{ ...LINE, models: names }],
  ...more,
})
const faultsOf = (config: object): readonly string[] => {
  try {
    loadConfig(config)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

describe('a pattern in a config', () => {
  const VALID: readonly [what: string, config: object][] = [
    ['of another length', configOf([model('gpt-*'), model('gpt-4o-*')], { 'gpt-*': '*' })],
    [
      'of the same length for other names',
      configOf([model('gpt-*'), model('sol-*')], { 'gpt-*': '*', 'sol-*': '*' }),
    ],
    ['of a line for models with an id', configOf([model('gpt-4o')], { 'gpt-*': '*' })],
    ['of a model for names of a line', configOf([model('gpt-*')], { 'gpt-4o': 'x' })],
    [
      'that matches a fallback',
      configOf([model('a', { fallbacks: ['gpt-4o'] }), model('gpt-*')], { a: 'a' }),
    ],
  ]
  for (const [what, config] of VALID) it(`is valid: ${what}`, () => assert.deepEqual(faultsOf(config), []))

  const FAULTS: readonly [config: object, fault: RegExp][] = [
    [
      configOf([model('gpt-*'), model('*mini')], { 'gpt-*': '*' }),
      /^models\[1\]\.id: matches the same names as models\[0\]\.id/,
    ],
    [
      configOf([model('a*'), model('*-x')], { 'a*': '*', '*b': '*' }),
      /^lines\[0\]\.models\.\*b: matches the same names/,
    ],
    [configOf([model('*gpt*')], { '*gpt*': '*' }), /^models\[0\]\.id: can have one "\*" only/],
    [
      configOf([model('gpt-*')], { 'claude-*': '*' }),
      /^lines\[0\]\.models\.claude-\*: there is no model "claude-\*"/,
    ],
    [configOf([model('gpt-*')], { claude: 'x' }), /^lines\[0\]\.models\.claude: there is no model/],
    [configOf([model('gpt-4o')], { 'gpt-4o': 'x*' }), /^lines\[0\]\.models\.gpt-4o: has a "\*"/],
    [
      configOf([model('a', { fallbacks: ['gpt-*'] }), model('gpt-*')], { a: 'a' }),
      /^models\[0\]\.fallbacks\[0\]: must be one model/,
    ],
    [
      configOf([model('a', { fallbacks: ['gpt-4o'] }), { id: 'gpt-*', kind: 'rerank' }], { a: 'a' }),
      /^models\[0\]\.fallbacks\[0\]: "gpt-4o" is of the kind "rerank"/,
    ],
    [
      configOf(
        [model('gpt-*')],
        { 'gpt-*': '*' },
        { passThrough: [{ path: '/v1/audio/*rest', model: 'gpt-*' }] },
      ),
      /^passThrough\[0\]\.model: must be one model/,
    ],
  ]
  for (const [config, fault] of FAULTS)
    it(`is a fault: ${fault.source}`, () => {
      const faults = faultsOf(config)
      assert.ok(
        faults.some((one) => fault.test(one)),
        faults.join('\n'),
      )
    })
})

describe('the name of a model on a line', () => {
  const NAMES: readonly [pattern: string, upstream: string, id: string, expected: string | undefined][] = [
    ['gpt-*', '*', 'gpt-4o', 'gpt-4o'],
    ['gpt-*', 'gpt-*', 'gpt-4o', 'gpt-4o'],
    ['gpt-*', 'vendor/gpt-*', 'gpt-4o', 'vendor/gpt-4o'],
    ['openai/*', '$1', 'openai/gpt-4o', 'gpt-4o'],
    ['openai/*', '$1', 'openai/$1', '$1'],
    ['*', '*', 'any/$&', 'any/$&'],
    ['openai/*', '$1', 'openai/..', undefined],
    ['openai/*', '$1', 'openai/', undefined],
    ['gpt-*', '*', 'claude', undefined],
    ['aba*ba', '*', 'aba', undefined],
  ]
  for (const [pattern, upstream, id, expected] of NAMES)
    it(`is ${expected} for ${id} with ${pattern}: ${upstream}`, () => {
      const line = { models: new Map([[pattern, upstream]]) }
      assert.equal(upstreamName(line, id), expected)
      if (expected !== undefined) assert.deepEqual(callersNames(line, expected), [id])
    })

  it('comes from an exact name first, and else from the most specific pattern', () => {
    const line = {
      models: new Map([
        ['*', 'any'],
        ['gpt-*', 'some'],
        ['gpt-4o', 'own'],
      ]),
    }
    assert.deepEqual(
      ['gpt-4o', 'gpt-5', 'x'].map((id) => upstreamName(line, id)),
      ['own', 'some', 'any'],
    )
  })
})

describe('a catalogue with patterns', () => {
  it('remembers no more than a bounded number of names', () => {
    const { catalog } = loadConfig(configOf([model('gpt-*')], { 'gpt-*': '*' }))
    const { models, lines } = catalog
    const other = createCatalog([...models.values()], lines)
    const first = other.modelOf('gpt-0')
    assert.equal(other.modelOf('gpt-0'), first)
    for (let i = 1; i <= 1000; i++) assert.equal(other.modelOf(`gpt-${i}`)?.pattern, 'gpt-*')
    assert.notEqual(other.modelOf('gpt-0'), first)
    assert.deepEqual(other.modelOf('gpt-0'), first)
    assert.equal(other.models.size, 1)
  })
})

describe('models without a price', () => {
  const priced = { price: { perRequest: '1' } }
  const unpriced = (account: object, key: object, line: object = {}): string[] => {
    const warnings = new ConfigWarnings(
      loadConfig({
        models: [model('free'), model('gpt-*'), model('dear', priced)],
        lines: [{ ...LINE, models: { free: 'x', 'gpt-*': '*', dear: 'y' }, ...line }],
      }),
    )
    warnings.addAccounts([{ id: 'acme', ...account }])
    warnings.addKeys([{ id: 'k', account: 'acme', secret: 's', ...key }])
    return warnings.unpriced()
  }
  it('are those without a price that a prepaid account may use', () => {
    assert.deepEqual(unpriced({ balance: '1' }, {}), ['free', 'gpt-*'])
    assert.deepEqual(unpriced({ balance: '1' }, { allowModels: ['f*'] }), ['free'])
    assert.deepEqual(unpriced({ balance: '1' }, {}, priced), [])
    assert.deepEqual(unpriced({}, {}), [])
  })
})
