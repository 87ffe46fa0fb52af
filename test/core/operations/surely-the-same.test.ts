import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { listOf } from '../../../lib/core/operations/body/list-of.ts'
import { surelyAccepts } from '../../../lib/core/operations/index.ts'

/** Every kind that is told without zod, at its bounds. */
const KINDS: Record<string, z.ZodType> = {
  text: z.string(),
  'text from 2': z.string().min(2),
  'text to 2': z.string().max(2),
  'text from 1 to 3': z.string().min(1).max(3),
  'text, bounded twice': z.string().min(2).min(1).max(3).max(4),
  number: z.number(),
  'number from 1': z.number().min(1),
  'number from 0 to 2': z.number().min(0).max(2),
  'number, bounded twice': z.number().min(1).min(0).max(2).max(3),
  integer: z.int(),
  'integer from 1 to 128': z.int().min(1).max(128),
  truth: z.boolean(),
  'one of two': z.enum(['a', 'ab']),
  anything: z.unknown().optional(),
  'either of two': z.union([z.boolean(), z.string().max(1)]),
  list: listOf(z.string()),
  'list from 1': listOf(z.string(), 1),
  'list from 1 to 2': listOf(z.string(), 1, 2),
  'list of lists': listOf(listOf(z.int())),
  object: z.looseObject({}),
  'object with a member': z.looseObject({ a: z.string() }),
  'object that may have one': z.looseObject({ a: z.string().optional(), b: z.int().nullish() }),
  'object in an object': z.looseObject({ a: z.looseObject({ b: z.boolean() }).nullish() }),
  'refined object': z.looseObject({ a: z.unknown().optional() }).refine(({ a }) => a !== 1),
  'object, refined twice': z
    .looseObject({ a: z.unknown().optional(), b: z.unknown().optional() })
    .refine(({ a }) => a !== 1)
    .refine(({ b }) => b !== 1),
}

const VALUES: unknown[] = [
  ...[undefined, null, true, false],
  ...['', 'a', 'ab', 'abc', 'abcd', '1'],
  ...[
    -1,
    -0,
    0,
    0.5,
    1,
    1.5,
    2,
    2.5,
    3,
    4,
    127,
    128,
    129,
    2 ** 53 - 1,
    2 ** 53,
    Number.NaN,
    Infinity,
    -Infinity,
  ],
  ...[
    [],
    ['a'],
    ['a', 'b'],
    ['a', 'b', 'c'],
    ['a', 1],
    [1],
    [null],
    [undefined],
    [[]],
    [[1], [2]],
    [[1], ['a']],
  ],
  ...[
    {},
    { a: 'x' },
    { a: 1 },
    { a: null },
    { b: 1 },
    { a: 'x', b: 1 },
    { a: 'x', b: 0.5 },
    { a: 'x', b: null },
  ],
  ...[{ a: {} }, { a: { b: true } }, { a: { b: 1 } }, { a: [] }, { length: 1 }, { further: 1 }],
]

describe('a value that is judged without zod', () => {
  for (const [kind, schema] of Object.entries(KINDS)) {
    it(`is judged the same, whether it may be missing or null: ${kind}`, () => {
      for (const form of [schema, schema.optional(), schema.nullable(), schema.nullish()]) {
        let accepted = 0
        for (const value of VALUES) {
          const { success } = form.safeParse(value)
          if (success) accepted++
          assert.equal(surelyAccepts(form, value), success, `${JSON.stringify(value)} ${typeof value}`)
        }
        assert.ok(accepted > 0 && (accepted < VALUES.length || kind === 'anything'))
      }
    })
  }

  it('is never accepted where zod would refuse it', () => {
    const schemas = [
      z.string().regex(/a/),
      z.number().gt(0),
      z.int32(),
      z.strictObject({}),
      z.object({}),
      z.null(),
    ]
    for (const schema of [...schemas, z.boolean().refine((on) => on), z.array(z.string()), z.undefined()])
      for (const value of VALUES)
        assert.ok(!surelyAccepts(schema, value) || schema.safeParse(value).success, JSON.stringify(value))
  })
})
