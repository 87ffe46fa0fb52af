import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  aFunction,
  aKeepTime,
  aListOf,
  aLogger,
  aNumber,
  anArray,
  anObject,
  anObjectWith,
  aPollTime,
  aString,
  aWholeNumber,
  checkOptions,
  kindOf,
  MAX_TIMER_MS,
  type OptionRule,
  oneOf,
  required,
  someMilliseconds,
} from '../../../lib/core/options/index.ts'

const fn = () => {}
const VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  1,
  1.5,
  -1,
  Number.NaN,
  Infinity,
  '',
  'a',
  [],
  ['a'],
  {},
  fn,
]
const both = { get: fn, set: fn }
class Store {
  get() {}
  set() {}
}

describe('the rule of an option', () => {
  const RULES: [what: string, rule: OptionRule, accepted: unknown[], others?: unknown[]][] = [
    ['a function', aFunction(), [fn]],
    [
      'an object with methods',
      anObjectWith('x', 'get', 'set'),
      [both, new Store()],
      [{ get: fn }, { get: fn, set: 1 }, Object.assign([], both)],
    ],
    ['one of some values', oneOf('a', true), [true, 'a'], ['b', 'true']],
    ['a string', aString(), ['a']],
    ['an array', anArray('x'), [[], ['a']]],
    [
      'a list of objects',
      aListOf('x', 'id', 'url'),
      [[], [{ id: 'a', url: '' }]],
      [[{ id: 'a' }], [{ id: 'a', url: 'b' }, null], [{ id: 1, url: 'b' }], [fn]],
    ],
    ['an object', anObject('x'), [{}, both]],
    [
      'a logger',
      aLogger,
      [{ info: fn, warn: fn, error: fn }],
      [
        { info: fn, warn: fn },
        { warn: fn, error: fn },
      ],
    ],
    ['milliseconds', someMilliseconds, [1, MAX_TIMER_MS], [MAX_TIMER_MS + 1]],
    ['a time to keep', aKeepTime, [1, Number.MAX_SAFE_INTEGER], [2 ** 53]],
    ['a time between reads', aPollTime, [0.5, 1, 1.5, 4000], [4001, '5']],
    ['a number', aNumber('x', -1, 1.5), [-1, 0, 1, 1.5], [-1.1, 1.6, '1']],
    ['a number without a bound', aNumber('x', 1.5), [1.5, Infinity], [1.4]],
    ['a whole number', aWholeNumber('x', 0, 1), [0, 1], [2]],
  ]
  for (const [what, { accepts }, accepted, others = []] of RULES)
    it(`accepts valid values, and nothing else: ${what}`, () => {
      for (const value of accepted) assert.equal(accepts(value), true, String(value))
      const rest = [...VALUES, ...others].filter(
        (value) =>
          !accepted.some(
            (one) => JSON.stringify(one) === JSON.stringify(value) && typeof one === typeof value,
          ),
      )
      for (const value of rest) assert.equal(accepts(value), false, String(value))
    })

  it('describes the valid values', () => {
    assert.deepEqual(
      [
        oneOf('a'),
        oneOf('a', 'b'),
        oneOf('a', 'b', false),
        aFunction(),
        aString(),
        someMilliseconds,
        aKeepTime,
      ].map(({ be }) => be),
      [
        '"a"',
        '"a" or "b"',
        '"a", "b" or false',
        'a function',
        'a string that is not empty',
        'a positive whole number of milliseconds, at most 2147483647 (24 days)',
        'a positive whole number of milliseconds',
      ],
    )
  })
})

describe('the kind of a value', () => {
  const KINDS: [value: unknown, kind: string][] = [
    [null, 'null'],
    [undefined, 'undefined'],
    [false, 'false'],
    [7, 'the number 7'],
    [Number.NaN, 'the number NaN'],
    [[], 'an empty array'],
    [['secret'], 'an array'],
    ['', 'an empty string'],
    ['secret', 'a string'],
    [{}, 'an object'],
    [Promise.resolve(), 'a promise: await it first'],
    [fn, 'a function'],
    [Symbol('secret'), 'a symbol'],
    [7n, 'a bigint'],
  ]
  for (const [value, kind] of KINDS)
    it(`is described without its text: ${kind}`, () => assert.equal(kindOf(value), kind))
})

describe('options', () => {
  interface Options {
    timeoutMs?: number
    store?: object
    onChange?: () => void
  }
  const RULES = { timeoutMs: someMilliseconds, store: anObject('a store'), onChange: aFunction() }
  const check = (options: unknown, extra?: Parameters<typeof checkOptions>[3]) => {
    try {
      checkOptions<Options>('thing', options as Options, RULES, extra)
    } catch (error) {
      assert.ok(error instanceof TypeError)
      return error.message
    }
    return undefined
  }

  it('are valid if each follows its rule, or is missing', () => {
    for (const options of [
      undefined,
      {},
      { timeoutMs: 5 },
      { timeoutMs: undefined, store: {}, onChange: fn },
    ])
      assert.equal(check(options), undefined)
    assert.equal(
      check({ timeoutMs: 0 }),
      `thing: "timeoutMs" must be ${someMilliseconds.be}, not the number 0`,
    )
  })

  it('must be an object', () => {
    for (const [given, kind] of [
      [null, 'null'],
      [7, 'the number 7'],
      [[], 'an empty array'],
      [fn, 'a function'],
    ])
      assert.equal(
        check(given),
        `thing: its options must be an object, such as { timeoutMs: … }, not ${kind}`,
      )
  })

  const needed = (options: object) =>
    checkOptions<{ a: number; b: number; c?: number }>('thing', options as never, {
      a: required(aNumber('1', 1)),
      b: required(aNumber('1', 1)),
      c: aNumber('1', 1),
    })
  it('may be required', () => {
    assert.throws(() => needed({ a: 1 }), new TypeError('thing: "b" must be 1, not undefined'))
    assert.doesNotThrow(() => needed({ a: 1, b: 1 }))
    assert.throws(
      () => needed(7 as unknown as object),
      new TypeError('thing: its options must be an object, such as { a, b }, not the number 7'),
    )
  })

  const ALL = 'its options are timeoutMs, store, onChange'
  const HINTS: [name: string, meant: string | undefined][] = [
    ['timeoutms', 'timeoutMs'],
    ['timeout', 'timeoutMs'],
    ['timeoutMsx', 'timeoutMs'],
    ['timoutMs', 'timeoutMs'],
    ['timeooutMs', 'timeoutMs'],
    ['timeoutNs', 'timeoutMs'],
    ['timoeutMs', 'timeoutMs'],
    ['itmeoutMs', 'timeoutMs'],
    ['stroe', 'store'],
    ['ttore', 'store'],
    ['sttre', 'store'],
    ['tsroe', undefined],
    ['xsore', undefined],
    ['txore', undefined],
    ['stoer2', undefined],
    ['other', undefined],
    ['nochange', 'onChange'],
    ['norchange', undefined],
  ]
  for (const [name, meant] of HINTS)
    it(`have no other names, but a similar one is suggested: ${name}`, () => {
      const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
      assert.equal(check({ [name]: 1 }), `thing: there is no option "${name}"${hint}; ${ALL}`)
      assert.equal(check({ [name]: 1 }, { others: 'ignored' }) !== undefined, meant !== undefined)
    })

  it('must be empty if there are no rules', () => {
    const none = (options: object) => () => checkOptions('thing', options, {})
    assert.doesNotThrow(none({}))
    assert.throws(none({ a: 1 }), new TypeError('thing: it has no options; leave out "a"'))
    assert.throws(none([]), new TypeError('thing: it has no options; leave out an empty array'))
  })

  it('are not a request, which means that the factory itself was mounted', () => {
    const request = { headers: {}, method: 'GET', socket: {} }
    assert.match(
      String(check(request)),
      /^thing: the function that makes the middleware was mounted; call it: app\.use\(thing\(\)\)/,
    )
    for (const other of [
      { ...request, headers: 1 },
      { ...request, method: 1 },
      { ...request, socket: undefined },
    ])
      assert.match(String(check(other)), /there is no option "headers"/)
  })
})
