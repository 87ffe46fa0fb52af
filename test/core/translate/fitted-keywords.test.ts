import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { fittedSchema } from '../../../lib/core/translate/chat-as-messages/fitted-schema.ts'
import { isPlainPattern } from '../../../lib/core/translate/chat-as-messages/plain-pattern.ts'

const text = (schema: JsonObject) => JSON.stringify(schema)

describe('a keyword of the schema of an answer', () => {
  const KEPT: JsonObject[] = [
    { title: 'T', default: 1, type: 'integer' },
    { type: 'object', required: ['a'], additionalProperties: false },
    { enum: ['a', 1, true, null] },
    { enum: ['a'] },
    { const: null },
    { const: 'a' },
    { type: 'array', minItems: 0 },
    { type: 'array', minItems: 1 },
    { type: 'string', format: 'uuid' },
    { type: ['string', 'null'], format: 'date', pattern: '^a' },
    { type: 'string', pattern: '^a{2}$' },
    { type: 'array', items: { type: 'null' } },
    { allOf: [{ type: 'string' }, { title: 'T' }] },
    { anyOf: [{ type: 'string' }, { type: 'null' }] },
    { $ref: '#/definitions/a', definitions: { a: { type: 'string' } } },
    { description: 'A thing.' },
  ]
  for (const schema of KEPT)
    it(`is kept: ${text(schema)}`, () => {
      // Nothing may stand beside a reference but what it refers to.
      const { $ref, ...others } = schema
      const expected = $ref === undefined ? schema : { ...others, anyOf: [{ $ref }] }
      assert.deepEqual(fittedSchema(schema), expected)
    })

  const TOLD: [given: JsonObject, kept: JsonObject, told: string][] = [
    [{ type: 'array', minItems: 2 }, { type: 'array' }, '{minItems: 2}'],
    [{ type: 'array', items: false }, { type: 'array' }, '{items: false}'],
    [{ type: 'integer', format: 'date' }, { type: 'integer' }, '{format: "date"}'],
    [{ type: 'integer', pattern: '^a' }, { type: 'integer' }, '{pattern: "^a"}'],
    [{ type: 'string', pattern: '(?=a)' }, { type: 'string' }, '{pattern: "(?=a)"}'],
    [{ enum: [] }, {}, '{enum: []}'],
    [{ enum: 'a' }, {}, '{enum: "a"}'],
    [{ enum: ['a', [1]] }, {}, '{enum: ["a",[1]]}'],
    [{ const: { a: 1 } }, {}, '{const: {"a":1}}'],
    [{ anyOf: 'a' }, {}, '{anyOf: "a"}'],
    [{ oneOf: { a: 1 } }, {}, '{oneOf: {"a":1}}'],
    [{ allOf: 7 }, {}, '{allOf: 7}'],
    [{ properties: 7 }, {}, '{properties: 7}'],
    [
      { anyOf: [{ type: 'null' }], oneOf: [{ type: 'string' }] },
      { anyOf: [{ type: 'null' }] },
      '{oneOf: [{"type":"string"}]}',
    ],
    [
      { type: 'object', additionalProperties: true },
      { type: 'object', additionalProperties: false },
      '{additionalProperties: true}',
    ],
    [{ minimum: 1, maximum: 2 }, {}, '{minimum: 1, maximum: 2}'],
    [{ description: 'A thing.', minimum: 1 }, {}, 'A thing.\n\n{minimum: 1}'],
    [{ description: '', minimum: 1 }, {}, '{minimum: 1}'],
  ]
  for (const [given, kept, description] of TOLD)
    it(`is told in the description: ${text(given)}`, () =>
      assert.deepEqual(fittedSchema(given), { ...kept, description }))

  it('oneOf is anyOf', () => {
    const one = [{ type: 'string' }, { type: 'null' }]
    assert.deepEqual(fittedSchema({ oneOf: one }), { anyOf: one })
  })

  it('is left out where it says nothing', () => {
    const silent = { $schema: 's', $id: 'i', $anchor: 'a', $comment: 'c', title: undefined, description: '' }
    assert.deepEqual(fittedSchema({ type: 'null', ...silent }), { type: 'null' })
  })

  it('stands for the type, where there is none', () => {
    const [object, array] = [{ a: { type: 'null' } }, { type: 'null' }]
    assert.deepEqual(fittedSchema({ properties: object }), {
      type: 'object',
      properties: object,
      additionalProperties: false,
    })
    assert.deepEqual(fittedSchema({ items: array }), { type: 'array', items: array })
    assert.deepEqual(fittedSchema({ type: 'string', items: array, properties: object }), {
      type: 'string',
      items: array,
      properties: object,
    })
  })

  it('closes an object that may be something else', () => {
    assert.deepEqual(fittedSchema({ type: ['object', 'null'] }), {
      type: ['object', 'null'],
      additionalProperties: false,
    })
  })
})

describe('a reference in the schema of an answer', () => {
  const $defs = { a: { type: 'string' }, b: { anyOf: [{ $ref: '#/$defs/a' }] } }
  const a = { $ref: '#/$defs/a' }

  const FIT: [what: string, given: JsonObject, expected?: JsonObject][] = [
    ['to each definition', { anyOf: [a, { $ref: '#/$defs/b' }, a], $defs }],
    ['alone in allOf', { allOf: [a], $defs }, { anyOf: [a], $defs }],
    ['with a title', { title: 'T', ...a, $defs }, { title: 'T', $defs, anyOf: [a] }],
    [
      'with a description',
      { items: { ...a, description: 'A thing.' }, $defs },
      { items: { anyOf: [a], description: 'A thing.' }, $defs, type: 'array' },
    ],
    [
      'within a property of a definition',
      {
        $defs: { ...$defs, c: { type: 'object', properties: { d: a }, additionalProperties: false } },
        anyOf: [{ $ref: '#/$defs/c' }],
      },
    ],
  ]
  for (const [what, given, expected = given] of FIT)
    it(`is kept ${what}`, () => assert.deepEqual(fittedSchema(given), expected))

  const UNFIT: [what: string, given: JsonObject][] = [
    ['is one of several in allOf', { allOf: [a, { type: 'string' }], $defs }],
    ['is the second in allOf', { allOf: [{ title: 'T' }, a], $defs }],
    ['stands in allOf beside anyOf', { allOf: [a], anyOf: [{ type: 'null' }], $defs }],
    ['stands in allOf beside oneOf', { allOf: [a], oneOf: [{ type: 'null' }], $defs }],
    ['leads into a definition', { $ref: '#/$defs/a/type', $defs }],
    ['leads elsewhere', { $ref: 'x#/$defs/a', $defs }],
    ['leads to a property', { type: 'object', properties: { a: {}, b: { $ref: '#/properties/a' } } }],
    ['leads to no schema', { $ref: '#/$defs/a', $defs: { a: true } }],
    ['leads to definitions that are none', { $ref: '#/$defs/a', $defs: 7 }],
    ['is no text', { $ref: 7 }],
    [
      'leads back by a property',
      { $ref: '#/$defs/c', $defs: { c: { properties: { d: { $ref: '#/$defs/c' } } } } },
    ],
    ['leads back by items', { $ref: '#/$defs/c', $defs: { c: { items: { $ref: '#/$defs/c' } } } }],
  ]
  for (const [what, given] of UNFIT)
    it(`makes it unfit where it ${what}`, () => assert.equal(fittedSchema(given), undefined))

  it('is no matter where nothing refers to the definition that holds it', () => {
    const unused = { type: 'string', $defs: { c: { anyOf: [{ $ref: '#/$defs/c' }] } } }
    assert.deepEqual(fittedSchema(unused), unused)
  })

  it('is not all that makes a schema unfit: one that is none does, too', () => {
    for (const none of [true, 7, 'a', null, []])
      assert.equal(fittedSchema({ anyOf: [{ type: 'null' }, none] }), undefined)
  })
})

describe('the repetitions of a pattern', () => {
  for (const pattern of ['a{100}', 'a{1,100}', 'a{100,}', 'x{a{2}']) {
    const plain = pattern !== 'x{a{2}'
    it(`${plain ? 'are' : 'are not'} plain: ${pattern}`, () => assert.equal(isPlainPattern(pattern), plain))
  }
  for (const pattern of [
    'a{101}',
    'a{1,101}',
    'a{101,}',
    'a{2}b{101}',
    'a??',
    'a*?',
    'a{2}?',
    'a++',
    '(?<=a)',
    '\\u0041',
    'a\\',
  ])
    it(`are not plain: ${pattern}`, () => assert.equal(isPlainPattern(pattern), false))
  for (const pattern of ['\\D\\S\\W\\n\\r\\t', '\\/\\.\\^\\$\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|', '[\\-]'])
    it(`stand beside plain escapes: ${pattern}`, () => assert.equal(isPlainPattern(pattern), true))
})
