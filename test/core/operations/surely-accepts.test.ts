import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { listOf } from '../../../lib/core/operations/body/list-of.ts'
import { surelyAccepts } from '../../../lib/core/operations/body/surely-accepts.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'

/** Of every kind that operations use and that is told without zod. */
const schema = z.looseObject({
  text: z.string(),
  name: z.string().min(1).max(3).nullish(),
  count: z.int().min(1).max(128).optional(),
  share: z.number().min(0).max(2).nullable(),
  on: z.boolean().nullish(),
  role: z.enum(['user', 'tool']).nullish(),
  content: z.union([z.string(), listOf(z.looseObject({ type: z.string() }))]).nullish(),
  items: listOf(z.looseObject({ id: z.int().nullish() }), 1).optional(),
  inner: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
})

const refined = z
  .looseObject({ a: z.string().nullish(), b: z.string().nullish() })
  .refine(({ a, b }) => (a ?? b) != null, { error: 'one of them' })

const number = fc.constantFrom(-1, 0, 0.5, 1, 1.5, 2, 2.1, 127, 128, 129, 2 ** 53)
const scalar = fc.oneof(fc.string({ maxLength: 5 }), number, fc.boolean(), fc.constant(null))
const typed = fc.record({ type: scalar, id: scalar }, { requiredKeys: [] })
const list = fc.array(fc.oneof(typed, scalar), { maxLength: 3 })
const any = fc.oneof(scalar, typed, list)

const good = fc.record(
  {
    text: fc.string(),
    name: fc.constantFrom('a', 'abc', null),
    count: fc.constantFrom(1, 2, 128),
    share: fc.constantFrom(0, 0.5, 2, null),
    on: fc.constantFrom(true, false, null),
    role: fc.constantFrom('user', 'tool', null),
    content: fc.oneof(fc.string(), fc.array(fc.record({ type: fc.string() }), { maxLength: 2 })),
    items: fc.array(fc.record({ id: fc.constantFrom(1, null) }, { requiredKeys: [] }), { minLength: 1 }),
    inner: fc.constantFrom(null, {}, { format: null }, { format: { type: 'json' } }),
    further: any,
  },
  { requiredKeys: ['text', 'share'] },
)
const edit = fc.record(Object.fromEntries(Object.keys(schema.shape).map((name) => [name, any])), {
  requiredKeys: [],
})
/** Sound, or with some members of another kind, or nothing like it. */
const sent = fc.oneof(
  { weight: 4, arbitrary: good },
  { weight: 4, arbitrary: fc.tuple(good, edit).map(([sound, edits]) => someOf(sound, edits)) },
  { weight: 1, arbitrary: any },
)

/** At most two of the edits, so that most of the value stays as it was. */
function someOf(sound: object, edits: object): object {
  return { ...sound, ...Object.fromEntries(Object.entries(edits).slice(0, 2)) }
}

describe('surelyAccepts', () => {
  it('tells the same as safeParse of all kinds it knows', () => {
    const told = { true: 0, false: 0 }
    fc.assert(
      fc.property(sent, (value) => {
        const { success } = schema.safeParse(value)
        told[`${success}`]++
        assert.equal(surelyAccepts(schema, value), success)
      }),
      { numRuns: 3000 },
    )
    assert.ok(told.true > 300 && told.false > 300, JSON.stringify(told))
  })

  for (const value of [{ a: 'x' }, { b: 'x' }, {}, { a: null }, { a: 1, b: 'x' }, [], 'x', null, undefined]) {
    it(`tells the same of a refined object: ${JSON.stringify(value)}`, () => {
      assert.equal(surelyAccepts(refined, value), refined.safeParse(value).success)
    })
  }

  const unknown: [string, z.ZodType, unknown][] = [
    ['a pattern', z.string().regex(/a/), 'a'],
    ['an exclusive bound', z.number().gt(0), 1],
    ['a number of another format', z.int32(), 1],
    ['a strict object', z.strictObject({}), {}],
    ['an object that drops members', z.object({}), {}],
    ['a refinement that adds its own issues', z.looseObject({}).superRefine(() => {}), {}],
    ['a boolean with a check', z.boolean().refine(() => true), true],
    ['an array', z.array(z.string()), []],
  ]
  for (const [name, kind, value] of unknown) {
    it(`leaves ${name} to zod`, () => {
      assert.equal(kind.safeParse(value).success, true)
      assert.equal(surelyAccepts(kind, value), false)
    })
  }

  for (const { path, schema: body } of OPERATIONS.filter(({ kind }) => kind === 'chat')) {
    it(`knows all kinds of a usual body of ${path}`, () => {
      const messages = [{ role: 'user', content: 'Hello!' }]
      const [prompt, input] = ['Hello!', 'Hello!']
      const usual = { model: 'm', messages, input, max_tokens: 5, stream: true, temperature: 1 }
      const sent = path === '/v1/completions' ? { ...usual, prompt } : usual
      assert.equal(body.safeParse(sent).success, true)
      assert.equal(surelyAccepts(body, sent), path !== '/v1/completions')
    })
  }
})
