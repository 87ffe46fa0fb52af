import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  isJsonObject,
  type JsonObject,
  objectsIn,
  parseKeepingIntegers,
} from '../../../lib/core/json/index.ts'
import { fittedSchema } from '../../../lib/core/translate/chat-as-messages/fitted-schema.ts'
import { isPlainPattern } from '../../../lib/core/translate/chat-as-messages/plain-pattern.ts'
import { chat } from './requests.ts'

/** Keywords that Anthropic refuses with any value. */
const REFUSED = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'patternProperties',
  'propertyNames',
  'prefixItems',
  'contains',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  '$schema',
  '$id',
]

/** Names of properties, of which some read like keywords. */
const name = fc.constantFrom('a', 'minimum', 'pattern', 'format', 'description', 'not', '$schema', 'items')
const constraint = fc.constantFrom<Record<string, unknown>>(
  {},
  { minimum: 11 },
  { exclusiveMaximum: 12.5 },
  { multipleOf: 13 },
  { minLength: 14, maxLength: 15 },
  { pattern: '^(?=a)b' },
  { format: 'iban' },
  { minItems: 16, maxItems: 17, uniqueItems: true },
  { minProperties: 18 },
  { propertyNames: { pattern: '^x' } },
  { patternProperties: { '^s_': { type: 'string' } } },
  { not: { const: 19 } },
  JSON.parse('{"if":{"required":["a"]},"then":{"minimum":20},"else":false}'),
  { enum: [{ deep: 21 }] },
  { additionalProperties: { type: 'string', minLength: 22 } },
  { additionalProperties: true },
  { description: 'A thing.', maximum: 23 },
)
const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc
      .tuple(fc.constantFrom('string', 'integer', 'number', 'boolean', 'null'), constraint)
      .map(([type, more]) => ({ type, ...more })),
    fc
      .tuple(fc.dictionary(name, tie('schema'), { maxKeys: 3 }), constraint)
      .map(([properties, more]) => ({ type: 'object', properties, ...more })),
    fc.tuple(tie('schema'), constraint).map(([items, more]) => ({ type: ['array', 'null'], items, ...more })),
    fc
      .tuple(
        fc.constantFrom('anyOf', 'oneOf', 'allOf'),
        fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
      )
      .map(([member, list]) => ({ [member]: list })),
  ),
}))

/** Every schema in a schema, with itself. Names of properties are no keywords. */
function* schemasIn(given: JsonObject): Generator<JsonObject> {
  yield given
  for (const member of ['properties', '$defs'])
    if (isJsonObject(given[member]))
      for (const one of Object.values(given[member])) yield* schemasIn(one as JsonObject)
  for (const member of ['anyOf', 'oneOf', 'allOf'])
    for (const one of objectsIn(given[member])) yield* schemasIn(one)
  if (isJsonObject(given.items)) yield* schemasIn(given.items)
}

/** The names of all properties, in their order. */
const namesIn = (given: JsonObject): string[] =>
  [...schemasIn(given)].flatMap(({ properties }) => (isJsonObject(properties) ? Object.keys(properties) : []))

describe('the schema of an answer on an anthropic line', () => {
  it('has no keyword that is refused, at any depth, and every property', () => {
    fc.assert(
      fc.property(schema, (given) => {
        const fitted = fittedSchema(given)
        assert.ok(fitted)
        for (const one of schemasIn(fitted)) {
          for (const keyword of REFUSED) assert.ok(!Object.hasOwn(one, keyword), keyword)
          assert.ok((one.additionalProperties ?? false) === false)
          assert.ok(one.minItems === undefined || one.minItems === 0 || one.minItems === 1)
          assert.ok(one.format !== 'iban')
          assert.ok(one.type !== 'object' || one.additionalProperties === false)
        }
        assert.deepEqual(namesIn(fitted), namesIn(given))
      }),
    )
  })

  it('says in a description what was taken out, at its place', () => {
    fc.assert(
      fc.property(schema, (given) => {
        const before = [...schemasIn(given)]
        const after = [...schemasIn(fittedSchema(given) ?? {})]
        assert.equal(after.length, before.length)
        for (const [i, one] of before.entries()) {
          const { description = '', anyOf, ...kept } = after[i] as JsonObject
          if (one.description !== undefined)
            assert.ok(String(description).startsWith(String(one.description)))
          for (const [keyword, value] of Object.entries(one)) {
            if (keyword in kept || keyword === 'description' || keyword === 'oneOf' || keyword === 'anyOf')
              continue
            assert.ok(String(description).includes(`${keyword}: ${JSON.stringify(value)}`), keyword)
          }
          assert.ok(one.oneOf === undefined || anyOf !== undefined)
        }
      }),
    )
  })

  const KEPT: [what: string, given: JsonObject, expected?: JsonObject][] = [
    ['an enum', { type: 'string', enum: ['a', 'b'] }],
    ['a constant', { const: 1 }],
    ['one item', { type: 'array', items: { type: 'string' }, minItems: 1 }],
    ['a known format', { type: 'string', format: 'date-time' }],
    ['a plain pattern', { type: 'string', pattern: '^[A-Z]{2,4}-\\d+$' }],
    ['a default and a title', { type: 'string', default: 'x', title: 'X' }],
    ['nullable', { type: ['string', 'null'] }],
    [
      'a definition',
      { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
      { anyOf: [{ $ref: '#/$defs/a' }], $defs: { a: { type: 'object', additionalProperties: false } } },
    ],
    [
      'what stands beside a reference',
      { type: 'array', items: { $ref: '#/$defs/a', minimum: 3 }, $defs: { a: { type: 'integer' } } },
      {
        type: 'array',
        items: { anyOf: [{ $ref: '#/$defs/a' }], description: '{minimum: 3}' },
        $defs: { a: { type: 'integer' } },
      },
    ],
    [
      'what has properties and no type',
      { properties: { a: { type: 'null' } } },
      { type: 'object', properties: { a: { type: 'null' } }, additionalProperties: false },
    ],
  ]
  for (const [what, given, expected = given] of KEPT) {
    it(`keeps ${what}`, () => assert.deepEqual(fittedSchema(given), expected))
  }

  it('keeps the values of an enum, a constant and a default that no number can hold', () => {
    const written =
      '{"type":"integer","enum":[1,9223372036854775807],"const":-9007199254740993,"default":12345678901234567890}'
    const given = parseKeepingIntegers(written)
    assert.ok(isJsonObject(given))
    assert.equal(JSON.stringify(fittedSchema(given)), written)
  })

  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
  const UNFIT: [what: string, given: JsonObject][] = [
    ['itself', { type: 'object', properties: { child: { $ref: '#' } } }],
    ['itself, by a definition', { $ref: '#/$defs/node', $defs: { node } }],
    [
      'itself, around a corner',
      {
        $ref: '#/$defs/a',
        $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { type: 'array', items: { $ref: '#/$defs/a' } } },
      },
    ],
    ['another document', { $ref: 'https://example.com/schema.json' }],
    ['nothing', { $ref: '#/$defs/none' }],
  ]
  for (const [what, given] of UNFIT) {
    it(`is given in words, if it refers to ${what}`, () => {
      assert.equal(fittedSchema(given), undefined)
      const response_format = { type: 'json_schema', json_schema: { name: 'n', schema: given } }
      const made = chat.translate({ response_format })
      assert.equal(made.output_config, undefined)
      assert.ok(String(objectsIn(made.system)[0]?.text).includes(JSON.stringify(given)))
      const fn = { name: 'f', parameters: { type: 'object', ...given }, strict: true }
      const [tool] = objectsIn(chat.translate({ tools: [{ type: 'function', function: fn }] }).tools)
      assert.deepEqual(tool, { name: 'f', input_schema: fn.parameters })
    })
  }

  it('is found for thousands of definitions, each of which refers to the next, and to the first', () => {
    const chain = (last: JsonObject): JsonObject => {
      const defs = Array.from({ length: 9000 }, (_, i): [string, JsonObject] => [
        `d${i}`,
        i === 8999 ? last : { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: '#/$defs/d8999' }] },
      ])
      return { $ref: '#/$defs/d0', $defs: Object.fromEntries(defs) }
    }
    assert.ok(fittedSchema(chain({ type: 'string' })))
    assert.equal(fittedSchema(chain({ $ref: '#/$defs/d0' })), undefined)
    assert.equal(fittedSchema(chain({ $ref: '#/$defs/none' })), undefined)
  })

  it('is that of strict tools, too, and of no others', () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer', minimum: 5 } } }
    const fn = (strict?: boolean) => ({ type: 'function', function: { name: 'f', parameters, strict } })
    const [strict, ...others] = objectsIn(chat.translate({ tools: [fn(true), fn(false), fn()] }).tools)
    assert.equal(strict?.strict, true)
    assert.deepEqual(strict?.input_schema, {
      type: 'object',
      properties: { n: { type: 'integer', description: '{minimum: 5}' } },
      additionalProperties: false,
    })
    for (const other of others) assert.deepEqual(other, { name: 'f', input_schema: parameters })
    const many = objectsIn(chat.translate({ tools: Array(25).fill(fn(true)) }).tools)
    assert.equal(many.filter(({ strict }) => strict === true).length, 20)
  })
})

describe('a plain pattern', () => {
  const PLAIN = ['^a$', '[a-z]+', '(ab|cd)*', '(?:x){1,3}', '\\d{4}-\\d{2}', 'a\\.b', '\\w+\\s?']
  const SPECIAL = ['(?=a)', '(?!a)', '(?<n>a)', '\\bx', '(a)\\1', '\\p{L}', 'a{1,1000}', 'a+?', '(', 5]
  for (const pattern of PLAIN) it(`is ${pattern}`, () => assert.equal(isPlainPattern(pattern), true))
  for (const pattern of SPECIAL) it(`is not ${pattern}`, () => assert.equal(isPlainPattern(pattern), false))
})

describe('the format of a string', () => {
  const known = ['date', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'time', 'uri', 'uuid']
  for (const format of known)
    it(`is kept: ${format}`, () =>
      assert.deepEqual(fittedSchema({ type: 'string', format }), { type: 'string', format }))
  for (const format of ['iban', 'regex', 'URI', '', 7])
    it(`is told as a text: ${format}`, () => {
      const { format: kept, description } = fittedSchema({ type: 'string', format }) ?? {}
      assert.equal(kept, undefined)
      assert.match(String(description), /format/)
    })
})
