import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Catalog, FREE, parseAmount } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { candidateOf, validateForward } from '../../../lib/middleware/forward/forward-options.ts'
import {
  type ForwardOptions,
  type ForwardRule,
  forward,
  forwardTo,
} from '../../../lib/middleware/forward/index.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'

const MIB = 1024 * 1024

/** A catalogue of these lines; `voice` is what they serve. */
function catalogOf(...lines: { id: string; [member: string]: unknown }[]): Catalog {
  return loadConfig({
    models: [{ id: 'voice', kind: 'chat' }],
    lines: lines.map((line) => ({
      ...{ provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { voice: 'v' } },
      ...line,
    })),
  }).catalog
}

const CATALOG = catalogOf({ id: 'l' }, { id: 'm' })
const RULE: ForwardRule = { lines: ['l'] }
const settled = (rule: ForwardRule = RULE, more: Partial<ForwardOptions> = {}) =>
  validateForward({ catalog: CATALOG, rule, ...more })

describe('forward with an option that is unusable', () => {
  const resources = new UpstreamResources()
  resources.close()
  const rows: [what: string, options: object, told: RegExp][] = [
    ['no catalogue', { catalog: undefined }, /"catalog"/],
    [
      'a function that returns no catalogue',
      { catalog: () => undefined },
      /"catalog" must return a catalogue/,
    ],
    ['a function that returns another thing', { catalog: () => ({ lines: [] }) }, /"catalog" must return/],
    ['no rule', { rule: undefined }, /^TypeError: forward: "rule" must be a rule/],
    ['a rule that is none', { rule: 'l' }, /forward: "rule" must be a rule/],
    ['things that are none', { resources: {} }, /forward: "resources" must be an UpstreamResources/],
    ['no bytes of a body', { bodyLimitBytes: 0 }, /forward: "bodyLimitBytes" must be a positive/],
    ['no number of bytes', { bodyLimitBytes: '1' }, /forward: "bodyLimitBytes" must be a positive/],
    ['no bytes of all bodies', { bodyBudgetBytes: 0 }, /forward: "bodyBudgetBytes" must be a positive/],
    [
      'less for all bodies than for one',
      { bodyLimitBytes: 9, bodyBudgetBytes: 8 },
      /forward: "bodyBudgetBytes" must be at/,
    ],
    [
      'less for all bodies than for one by default',
      { bodyBudgetBytes: 20 * MIB - 1 },
      /"bodyBudgetBytes" must be at least/,
    ],
    ['an option that there is not', { retries: 1 }, /forward: there is no option "retries"/],
    ['a strategy that there is not', { strategy: 'best' }, /forward: "strategy"/],
    ['a registry that is none', { lines: {} }, /forward: "lines"/],
  ]
  for (const [what, options, told] of rows)
    it(`says so: ${what}`, () => {
      const given = { catalog: CATALOG, rule: RULE, ...options } as ForwardOptions
      assert.throws(() => forward(given), told)
    })

  const rules: [what: string, rule: object, told: RegExp][] = [
    ['lines that are no list', { lines: 'l' }, /forward: the rule: "lines" must be an array/],
    ['an empty list', { lines: [] }, /the rule: "lines" must be an array of ids .* not an empty array/],
    ['a model that there is not', { lines: undefined, model: 'none' }, /forward: there is no model "none"/],
    ['a line that there is not', { lines: ['l', 'none'] }, /forward: there is no line "none"/],
    ['a model that is none', { lines: undefined, model: 7 }, /the rule: "model"/],
    ['both', { model: 'voice' }, /either "lines" or "model"/],
    ['neither', { lines: undefined }, /either "lines" or "model"/],
    ['a price that is none', { price: '1' }, /the rule: "price" must be amounts/],
    ['an amount that is none', { price: { perMinute: 'much' } }, /much|amount/],
    ['a cost that is none', { cost: 7 }, /the rule: "cost" must be amounts/],
    ['no time', { sessionMs: 0 }, /the rule: "sessionMs" must be above 0/],
    ['more than a day', { sessionMs: 86_400_001 }, /the rule: "sessionMs" must be above 0/],
    ['methods that are no list', { methods: 'GET' }, /the rule: "methods" must be an array/],
    ['a method that shows the key', { methods: ['GET', 'TRACE'] }, /"TRACE" is no method/],
    ['a method that is answered itself', { methods: ['OPTIONS'] }, /"OPTIONS" is no method/],
    ['a path that is none', { path: 7 }, /the rule: "path"/],
    ['a kind that is none', { path: '/v1/x', keeps: 7 }, /the rule: "keeps"/],
    ['a kind without a path', { keeps: 'voice' }, /"keeps" of the rule needs its "path"/],
    [
      'a kind below any path',
      { path: '/v1/*rest', keeps: 'voice' },
      /needs its "path", a path that begins with/,
    ],
    ['a member that there is not', { price_: {} }, /the rule: there is no option "price_"/],
  ]
  for (const [what, rule, told] of rules)
    it(`says so of its rule: ${what}`, () => {
      assert.throws(() => forward({ catalog: CATALOG, rule: { ...RULE, ...rule } as ForwardRule }), told)
    })

  it('does not pass: forwardTo', () => {
    assert.throws(() => forwardTo({ lines: {} as LineRegistry }), /^TypeError: forwardTo: "lines"/)
    assert.throws(() => forwardTo({ region: 7 as never }), /^TypeError: forwardTo: "region"/)
    assert.throws(() => forwardTo({ catalog: CATALOG } as never), /forwardTo: there is no option "catalog"/)
  })
})

describe('the default of a rule', () => {
  it('is free, for an hour, for all methods, of any account', () => {
    const { modelId, terms, sessionMs, methods, owned, maxAttempts } = settled()
    assert.deepEqual([modelId, sessionMs, owned, maxAttempts], [undefined, 3_600_000, undefined, 3])
    assert.deepEqual(terms, { price: FREE, cost: undefined })
    assert.deepEqual([...methods], ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
  })

  it('is 20 MiB of JSON, and 256 MiB for all, and nothing that is kept', () => {
    const resources = new UpstreamResources()
    resources.close()
    const budget = { perKey: 40 * MIB, perProcess: 256 * MIB }
    const large = settled(RULE, { resources })
    assert.deepEqual(
      [{ resources: large.owned?.resources, declared: large.owned?.declared }, large.bounds],
      [
        { resources, declared: undefined },
        { bodyLimitBytes: 20 * MIB, budget },
      ],
    )
    const small = settled(
      { ...RULE, path: '/v1/voices/:id', keeps: 'voice' },
      { resources, bodyLimitBytes: 5, bodyBudgetBytes: 7 },
    )
    assert.deepEqual(small.owned?.declared, { path: 'voices', kind: 'voice' })
    assert.deepEqual(small.bounds, { bodyLimitBytes: 5, budget: { perKey: 10, perProcess: 7 } })
  })
})

describe('the setting of a rule', () => {
  it('is its price and its cost, of a request and of a minute', () => {
    const price = { perRequest: '0.01', perMinute: '0.5' }
    const amounts = { perRequest: parseAmount('0.01'), perMinute: parseAmount('0.5') }
    assert.deepEqual(settled({ ...RULE, price }).terms, { price: { ...FREE, ...amounts }, cost: undefined })
    assert.deepEqual(settled({ ...RULE, cost: price }).terms, { price: FREE, cost: { ...FREE, ...amounts } })
    for (const name of ['perRequest', 'perMinute'] as const)
      assert.deepEqual(settled({ ...RULE, price: { [name]: '2' } }).terms.price, {
        ...FREE,
        [name]: parseAmount('2'),
      })
  })

  it('is its methods, of which GET includes HEAD', () => {
    const rows: [ForwardRule['methods'], string[]][] = [
      [['GET'], ['GET', 'HEAD']],
      [
        ['POST', 'GET'],
        ['POST', 'GET', 'HEAD'],
      ],
      [['HEAD'], ['HEAD']],
      [
        ['POST', 'DELETE'],
        ['POST', 'DELETE'],
      ],
      [
        ['PUT', 'PATCH'],
        ['PUT', 'PATCH'],
      ],
      [[], []],
    ]
    for (const [methods, passed] of rows) assert.deepEqual([...settled({ ...RULE, methods }).methods], passed)
  })

  it('is how long it may take, up to a day', () => {
    for (const sessionMs of [0.5, 1, 86_400_000])
      assert.equal(settled({ ...RULE, sessionMs }).sessionMs, sessionMs)
  })
})

describe('the lines of a rule', () => {
  const idsOf = (rule: ForwardRule, catalog: Catalog) =>
    validateForward({ catalog, rule })
      .listFor()
      .all.candidates.map(({ line }) => line.id)

  it('come by priority, then by weight, then as the rule names them', () => {
    const catalog = catalogOf(
      { id: 'a', priority: 1, weight: 9 },
      { id: 'b', priority: 0, weight: 1 },
      { id: 'c', priority: 0, weight: 5 },
      { id: 'd', priority: 0, weight: 5 },
    )
    assert.deepEqual(idsOf({ lines: ['a', 'b', 'd', 'c'] }, catalog), ['d', 'c', 'b', 'a'])
    assert.deepEqual(idsOf({ lines: ['b', 'a'] }, catalog), ['b', 'a'])
    assert.deepEqual(idsOf({ model: 'voice' }, catalog), ['c', 'd', 'b', 'a'])
  })

  it('are asked for the name that they have for the model, or for none', () => {
    const [line] = catalogOf({ id: 'l', contextWindow: 7000 }).lines
    assert.ok(line)
    const lines = new LineRegistry()
    const price = { ...FREE, perRequest: 7n }
    const of = (model?: string) => candidateOf(line, lines, model, price)
    assert.deepEqual(
      [of('voice'), of('other'), of()].map(({ upstreamModel }) => upstreamModel),
      ['v', 'other', ''],
    )
    const { state, modelState, native, missing, contextWindow, price: own } = of('voice')
    assert.equal(state, lines.stateOf(line))
    assert.equal(modelState, state.modelState('voice'))
    assert.equal(of('voice').rest, modelState)
    assert.equal(of().modelState, state.modelState(''))
    assert.deepEqual([native, missing, contextWindow, own], [true, undefined, 7000, price])
    assert.equal(candidateOf(line, lines).price, FREE)
  })

  it('have the state of the registry that the app shares, and the price of the rule', () => {
    const lines = new LineRegistry()
    const [candidate] = settled({ ...RULE, price: { perRequest: '3' } }, { lines }).listFor().all.candidates
    assert.equal(candidate?.state, lines.stateOf(candidate?.line as never))
    assert.equal(candidate?.price.perRequest, parseAmount('3'))
  })

  it('are looked up once for each catalogue, and share what is left of retries', () => {
    let current = CATALOG
    const asked: unknown[] = []
    const catalog = (call?: unknown) => {
      asked.push(call)
      return current
    }
    const { listFor } = validateForward({ catalog: catalog as ForwardOptions['catalog'], rule: RULE })
    const first = listFor()
    assert.equal(listFor(), first)
    current = catalogOf({ id: 'l', baseUrl: 'http://127.0.0.1:8/v1' })
    const call = { id: 'of this call' }
    const second = listFor(call as never)
    assert.equal(asked.at(-1), call)
    assert.notEqual(second, first)
    assert.equal(second.all.candidates[0]?.line, current.lines[0])
    assert.equal(second.all.budget, first.all.budget)
    current = CATALOG
    assert.equal(listFor(), first)
    current = catalogOf({ id: 'other' })
    assert.throws(() => listFor(), /no line "l"/)
  })
})
