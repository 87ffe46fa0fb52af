import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isStrict } from '../../../lib/core/translate/requests/strict-schema.ts'

const names = (prefix: string, length: number) => Array.from({ length }, (_, i) => `${prefix}${i}`)
const closed = (properties: readonly string[], required: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(properties.map((name) => [name, { type: 'string' }])),
  required,
  additionalProperties: false,
})

describe('a strict schema', () => {
  it('requires all its properties, and nothing else', () => {
    const own = names('p', 1000)
    assert.equal(isStrict(closed(own, own)), true)
    assert.equal(isStrict(closed(own, own.toReversed())), true)
    assert.equal(isStrict(closed(own, own.slice(1))), false)
    assert.equal(isStrict(closed(own, [...own.slice(1), 'p1'])), false)
    assert.equal(isStrict(closed(own, [...names('q', 10_000), ...own])), false)
    assert.equal(isStrict({ type: 'array', items: closed(own, []) }), false)
  })

  const NO_STRINGS = { additionalProperties: false }
  const ROWS: [schema: unknown, strict: boolean][] = [
    [{ type: 'object', required: [], ...NO_STRINGS }, true],
    [{ type: 'object', ...NO_STRINGS }, true],
    [{ type: 'object', properties: {}, required: 'a', ...NO_STRINGS }, true],
    [{ type: 'object', required: ['a'], ...NO_STRINGS }, false],
    [{ type: 'object' }, false],
    [{ properties: {} }, false],
    [{ properties: { a: { type: 'null' } }, required: ['a'], ...NO_STRINGS }, true],
    [{ properties: { a: {} }, required: ['a'], additionalProperties: true }, false],
    [{ anyOf: [{ type: 'string' }, { type: 'object' }] }, false],
    [{ anyOf: [{ type: 'string' }, closed(['a'], ['a'])] }, true],
    [{ $defs: { a: { type: 'object' } } }, false],
    [{ type: 'string' }, true],
    [undefined, true],
  ]
  for (const [schema, strict] of ROWS)
    it(`is ${strict ? '' : 'not '}${JSON.stringify(schema)}`, () => assert.equal(isStrict(schema), strict))

  it('is at most 100 levels deep, in lists too', () => {
    const nested = (levels: number, wrap: (inner: unknown) => unknown) => {
      let schema: unknown = { type: 'null' }
      for (let i = 0; i < levels; i++) schema = wrap(schema)
      return schema
    }
    for (const [most, wrap] of [
      [99, (items: unknown) => ({ items })],
      [49, (inner: unknown) => ({ anyOf: [inner] })],
    ] as const) {
      assert.equal(isStrict(nested(most, wrap)), true)
      assert.equal(isStrict(nested(most + 1, wrap)), false)
    }
  })
})
