import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { bodyFault, listOf, valueFault } from '../../../../lib/core/operations/body/body-schema.ts'

const typed = z.looseObject({ type: z.string({ error: 'must be a string' }) })
const schema = z.looseObject({
  model: z.string({ error: 'must be a string' }),
  max_tokens: z.int({ error: 'must be a whole number.' }).nullish(),
  content: z.union([z.string(), listOf(typed)], { error: 'must be a string or a list' }).nullish(),
  input: z.union([z.string(), z.looseObject({ a: z.union([z.string(), listOf(typed)]) })]).nullish(),
  strict: z.strictObject({ list: listOf(z.strictObject({ a: z.unknown() })).optional() }).optional(),
})

/** The fault of a body that the schema refuses. */
function fault(body: unknown, path: PropertyKey[] = []): [param: string, message: string] {
  const { param, message } = valueFault(schema, body, path) ?? assert.fail('it is accepted')
  return [param, message]
}

describe('the fault of a body', () => {
  const rows: [what: string, body: object, param: string, message: string][] = [
    ['a member', { model: 7 }, 'model', 'model: must be a string.'],
    ['the first of several', { model: 7, max_tokens: 'x' }, 'model', 'model: must be a string.'],
    [
      'one whose words end in a stop',
      { model: 'm', max_tokens: 0.5 },
      'max_tokens',
      'max_tokens: must be a whole number.',
    ],
    [
      'an unknown member',
      { model: 'm', strict: { b: 1, c: 2 } },
      'strict.b',
      'strict.b is not a known member.',
    ],
    [
      'an unknown member of an item',
      { model: 'm', strict: { list: [{ a: 1 }, { a: 1, b: 2 }] } },
      'strict.list[1].b',
      'strict.list[1].b is not a known member.',
    ],
    ['neither of two kinds', { model: 'm', content: 7 }, 'content', 'content: must be a string or a list.'],
    [
      'the kind that fits best, up to its first fault',
      { model: 'm', content: [{ type: 'a' }, { type: 7 }] },
      'content[1].type',
      'content[1].type: must be a string.',
    ],
    [
      'the kind that fits best, of kinds within kinds',
      { model: 'm', input: { a: [{ type: 7 }] } },
      'input.a[0].type',
      'input.a[0].type: must be a string.',
    ],
  ]
  for (const [what, body, param, message] of rows)
    it(`is of ${what}`, () => assert.deepEqual(fault(body), [param, message]))

  it('starts with the path of the body', () => {
    assert.deepEqual(fault({ model: 7 }, ['a', 0]), ['a[0].model', 'a[0].model: must be a string.'])
    assert.deepEqual(fault(7, ['header'])[0], 'header')
    assert.deepEqual(fault(7, [3])[0], '[3]')
  })

  it('has a name of 200 characters at most', () => {
    const name = 'x'.repeat(300)
    assert.equal(fault({ model: 'm', strict: { [name]: 1 } })[0], `strict.${name}`.slice(0, 200))
  })
})

describe('a list that is checked item by item', () => {
  const list = listOf(z.strictObject({ a: z.int(), b: z.int() }), 1, 3)
  const faultOf = (value: unknown, of: z.ZodType = list) => valueFault(of, value, ['list'])?.message
  const item = { a: 1, b: 2 }

  it('has a maximum number of items', () => {
    for (const value of [[item], [item, item, item]]) assert.equal(faultOf(value), undefined)
    assert.equal(faultOf([]), 'list: must not be empty.')
    assert.equal(faultOf([item, item, item, item]), 'list: must not have more than 3 items.')
    for (const value of ['x', {}, null, 7]) assert.equal(faultOf(value), 'list: must be a list.')
  })

  it('has the fault of its first invalid item', () => {
    assert.equal(faultOf([item, { a: 'x', b: 'y' }, 7]), 'list[1].a: must be a number.')
  })

  it('is not checked after its first invalid item', () => {
    let checked = 0
    const counting = listOf(z.custom(() => checked++ < 0))
    assert.match(faultOf(Array(1000).fill('x'), counting) ?? '', /^list\[0\]: /)
    assert.ok(checked < 10, `${checked} checks`)
  })

  it('is declared as a list in the schema of an endpoint', () => {
    const told = (given: z.ZodType) => {
      const { $schema: _, ...json } = z.toJSONSchema(given, { io: 'input', unrepresentable: 'any' })
      return json
    }
    assert.deepEqual(told(listOf(z.string(), 1, 3)), {
      type: 'array',
      minItems: 1,
      maxItems: 3,
      items: { type: 'string' },
    })
    assert.deepEqual(told(listOf(z.boolean())), { type: 'array', minItems: 0, items: { type: 'boolean' } })
  })
})

describe('a member whose name reads like one that is checked', () => {
  const sound = { model: 'm' }
  const refused: [body: object, param: string][] = [
    [{ ...sound, Model: 'x' }, 'Model'],
    [{ Model: 'x' }, 'Model'],
    [{ ...sound, maxTokens: 1 }, 'maxTokens'],
    [{ ...sound, 'max-tokens': 1 }, 'max-tokens'],
    [{ ...sound, _model_: 1 }, '_model_'],
    [{ ...sound, ſtrict: 1 }, 'ſtrict'],
    [{ ...sound, content: [{ type: 'a' }, { type: 'a', Type: 'b' }] }, 'content[1].Type'],
    [{ ...sound, input: { a: [{ type: 'a', TYPE: 'b' }] } }, 'input.a[0].TYPE'],
    [{ ...sound, [`${'_'.repeat(59)}model`]: 1 }, `${'_'.repeat(59)}model`],
  ]
  for (const [body, param] of refused)
    it(`is refused in ${JSON.stringify(body)}`, () => {
      const message = `${param} is not a known member: its name differs from one that is only in case or separators.`
      assert.deepEqual(bodyFault(schema, body), { param, message })
    })

  const accepted: object[] = [
    sound,
    { ...sound, other: 1, '': 2, modelname: 3 },
    { ...sound, content: 'Type' },
    { ...sound, other: { Model: 1 }, content: null },
    { ...sound, [`${'_'.repeat(60)}model`]: 1 },
  ]
  for (const body of accepted)
    it(`is not found in ${JSON.stringify(body)}`, () => assert.equal(bodyFault(schema, body), undefined))
})
