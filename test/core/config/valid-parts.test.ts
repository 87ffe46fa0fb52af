import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { validParts } from '../../../lib/core/config/valid-parts.ts'

const item = z.strictObject({ id: z.string(), n: z.int().min(1).optional() })
const schema = z.strictObject({
  name: z.string().optional(),
  count: z.int().default(5),
  inner: item.prefault({ id: 'x' }),
  none: item.nullable().optional(),
  list: z.array(item).optional(),
  map: z.record(z.string(), z.int()).default({}),
  either: z.union([z.string(), item]).optional(),
})

describe('the valid parts of a value', () => {
  const rest = { count: 5, inner: { id: 'x' }, map: {} }
  const absent = { name: undefined, none: undefined, list: undefined, either: undefined }
  const rows: [what: string, value: unknown, parts: unknown][] = [
    ['all of what is valid, with its defaults', { name: 'a' }, { name: 'a', ...rest }],
    ['all but an unknown member', { name: 'a', other: 1 }, { ...absent, name: 'a', ...rest }],
    ['all but a member', { name: 7, count: 6 }, { ...absent, ...rest, count: 6 }],
    [
      'no default in the place of what is not valid',
      { count: 'x' },
      { ...absent, ...rest, count: undefined },
    ],
    [
      'the rest of a member',
      { inner: { id: 'y', n: 0 } },
      { ...absent, ...rest, inner: { id: 'y', n: undefined } },
    ],
    [
      'the rest of one that may be null',
      { none: { id: 7, n: 1 } },
      { ...absent, ...rest, none: { id: undefined, n: 1 } },
    ],
    [
      'items at their places',
      { list: [{ id: 'a' }, 7, { id: 'b', n: 0 }, null] },
      { ...absent, ...rest, list: [{ id: 'a' }, undefined, { id: 'b', n: undefined }, undefined] },
    ],
    ['no list of what is none', { list: { id: 'a' } }, { ...absent, ...rest }],
    ['entries of a record', { map: { a: 1, b: 'x', c: 2 } }, { ...absent, ...rest, map: { a: 1, c: 2 } }],
    ['no record of what is none', { map: [1] }, { ...absent, ...rest, map: undefined }],
    ['nothing of what may be either of two', { either: { id: 7 } }, { ...absent, ...rest }],
    ['nothing of another value', [], undefined],
    ['nothing of a text', 'x', undefined],
    ['nothing of null', null, undefined],
  ]
  for (const [what, value, parts] of rows)
    it(`are ${what}`, () => assert.deepEqual(validParts(schema, value), parts))
})
