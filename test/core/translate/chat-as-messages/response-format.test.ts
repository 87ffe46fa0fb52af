import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  isJsonObject,
  type JsonObject,
  objectsIn,
  parseKeepingIntegers,
} from '../../../../lib/core/json/index.ts'
import { messageAsChatAnswer } from '../../../../lib/core/translate/chat-as-messages/answer.ts'
import {
  CodeBlockRemover,
  fittedSchema,
  isPlainPattern,
  withoutCodeBlock,
} from '../../../../lib/core/translate/chat-as-messages/response-format.ts'
import { responsesAsMessages } from '../../../../lib/core/translate/directions.ts'
import { messageEvents } from '../../../support/scripted-upstream.ts'
import { chat } from '../support/requests.ts'
import { clientOn } from '../support/responses.ts'
import { relayTranslated } from '../support/streams.ts'

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
      const defs = Array.from({ length: 3000 }, (_, i): [string, JsonObject] => [
        `d${i}`,
        i === 2999 ? last : { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: '#/$defs/d2999' }] },
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
    it(`is described in a text: ${format}`, () => {
      const { format: kept, description } = fittedSchema({ type: 'string', format }) ?? {}
      assert.equal(kept, undefined)
      assert.match(String(description), /format/)
    })
})

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
    it(`is named in the description: ${text(given)}`, () =>
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

const JSON_TEXT = '{"a": "```", "b": [1]}'
const FORMS = [JSON_TEXT, `\`\`\`json\n${JSON_TEXT}\n\`\`\``, `\n\`\`\`\n${JSON_TEXT}\n\`\`\`\n`]
const request = { response_format: { type: 'json_object' } }
const asked = { text: { format: { type: 'json_object' } } }

describe('an answer that shall be a JSON object', () => {
  it('is asked for in the system prompt, behind that of the caller', () => {
    const made = chat.translate({
      ...request,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ],
    })
    const [first, second] = objectsIn(made.system)
    assert.equal(first?.text, 'Be brief.')
    assert.match(String(second?.text), /one JSON object/)
    assert.equal(made.output_config, undefined)
  })

  for (const form of FORMS) {
    const message: JsonObject = {
      id: 'msg_1',
      model: 'm',
      content: [{ type: 'text', text: form }],
      stop_reason: 'end_turn',
    }
    it(`comes without a code block, whole: ${JSON.stringify(form)}`, () => {
      const { body } = messageAsChatAnswer(message, {}, { request, created: 5, estimatedInputTokens: 0 })
      assert.deepEqual(JSON.parse(String(contentOf(body))), JSON.parse(JSON_TEXT))
      const plain = messageAsChatAnswer(message, {}, { request: {}, created: 5, estimatedInputTokens: 0 })
      assert.equal(contentOf(plain.body), form)
      const response = responsesAsMessages.answer(
        message,
        {},
        { request: asked, created: 5, estimatedInputTokens: 0 },
      )
      const [item] = objectsIn(response.body.output)
      assert.deepEqual(JSON.parse(String(objectsIn(item?.content)[0]?.text)), JSON.parse(JSON_TEXT))
    })

    it(`comes without a code block, streamed: ${JSON.stringify(form)}`, async () => {
      const events = messageEvents([...form])
      const { text } = relayTranslated('anthropic', events.join(''), { request })
      assert.deepEqual(JSON.parse(textOf(text)), JSON.parse(JSON_TEXT))
      const client = clientOn('anthropic', responsesAsMessages, events, asked)
      const stream = client.responses.stream({ model: 'm', input: 'hi' })
      const { output_text: said } = await stream.finalResponse()
      assert.deepEqual(JSON.parse(said), JSON.parse(JSON_TEXT))
    })
  }

  for (const [what, first, piece] of [
    ['begins with endless white space', '', ' \n'],
    ['does not end the line of its code block', '```', 'json'],
    ['goes on with endless white space in its code block', '```json\n{}', '    '],
    ['goes on with endless backticks in its code block', '```json\n{}', '`'],
  ] as const)
    it(`costs each piece the same if it ${what}`, { timeout: 10_000 }, () => {
      // To read all of them again for each piece would take minutes.
      const pieces = 100_000
      const unfencing = new CodeBlockRemover()
      let made = unfencing.push(first)
      for (let i = 0; i < pieces; i++) made += unfencing.push(piece)
      made += unfencing.end()
      assert.equal(made, withoutCodeBlock(first + piece.repeat(pieces)))
    })

  it('is the only one that loses its code block', () => {
    const json_schema = { name: 'n', schema: { type: 'object', properties: {} } }
    const text = '```\n{}\n```'
    const told = (response_format: unknown) => {
      const asked = { request: { response_format }, created: 5, estimatedInputTokens: 0 }
      return contentOf(messageAsChatAnswer({ content: [{ type: 'text', text }] }, {}, asked).body)
    }
    for (const other of [
      undefined,
      { type: 'text' },
      { type: 'json_schema', json_schema },
      { type: 'json_object', schema: json_schema.schema },
      { type: 'grammar' },
    ])
      assert.equal(told(other), text)
    assert.equal(told({ type: 'json_object' }), '{}')
  })

  it('comes the same in whatever pieces', () => {
    const piece = fc.constantFrom('```', '`', '\n', 'json', '{"a":1}', ' ', 'x')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const unfencing = new CodeBlockRemover()
        const made = pieces.map((text) => unfencing.push(text)).join('') + unfencing.end()
        assert.equal(made, withoutCodeBlock(pieces.join('')))
        if (!pieces.join('').trimStart().startsWith('```')) assert.equal(made, pieces.join(''))
      }),
    )
  })
})

function contentOf({ choices }: JsonObject): unknown {
  const [{ message } = {}] = objectsIn(choices)
  return (message as JsonObject).content
}

/** The content of a stream of chunks. */
function textOf(stream: string): string {
  return [...stream.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data = '']) => objectsIn(JSON.parse(data).choices)[0]?.delta as JsonObject | undefined)
    .map((delta) => (typeof delta?.content === 'string' ? delta.content : ''))
    .join('')
}

describe('the code block around an answer', () => {
  const ROWS: [given: string, made: string][] = [
    ['{}', '{}'],
    [' {} ', ' {} '],
    ['```\n{}\n```', '{}'],
    ['```json\n{}```', '{}'],
    ['\n ```json\n{}\n``` \n', '{}'],
    ['```\n{}', '{}'],
    ['```\n{}\n``', '{}\n``'],
    ['```\n{}\n````', '{}\n````'],
    ['```\n{}\n```\nDone.', '{}\n```\nDone.'],
    ['```\n', ''],
    ['```', ''],
    ['```\n\n{}', '\n{}'],
    ['``', '``'],
    [' `` ', ' `` '],
    ['``{}``', '``{}``'],
    ['`{}`\n```', '`{}`\n```'],
    ['{}\n```', '{}\n```'],
    ['', ''],
    [' \n ', ' \n '],
  ]
  for (const [given, made] of ROWS) {
    it(`is taken away, and nothing else is: ${JSON.stringify(given)}`, () => {
      const whole = given === '```' ? given : made
      assert.equal(withoutCodeBlock(given), whole)
      const pieces = new CodeBlockRemover()
      assert.equal([...given].map((piece) => pieces.push(piece)).join('') + pieces.end(), whole)
    })
  }

  it('keeps back no more than what may be its beginning or its end', () => {
    const pieces = new CodeBlockRemover()
    const sent = [' ', '``', '`js', 'on\n{"a"', ':1}', ' \n', '``', '` ', 'x', '```'].map((piece) =>
      pieces.push(piece),
    )
    assert.deepEqual(sent, ['', '', '', '{"a"', ':1}', '', '', '', ' \n``` x', ''])
    assert.equal(pieces.end(), '')
    assert.equal(pieces.end(), '')
    const plain = new CodeBlockRemover()
    assert.deepEqual(
      ['`', 'a', '` \n'].map((piece) => plain.push(piece)),
      ['', '`a', '` \n'],
    )
    assert.equal(plain.end(), '')
  })
})
