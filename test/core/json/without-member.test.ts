import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseJson } from '../../../lib/core/json/index.ts'
import { withoutMember } from '../../../lib/core/json/without-member.ts'

const name = fc.constantFrom('logprobs', 'a', '"', 'logprobs\\', '', '"logprobs":[')
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(name, fc.integer(), fc.constant(null), fc.boolean()),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}))
const isContainer = (given: unknown): boolean => typeof given === 'object' && given !== null

describe('a JSON text without the lists and objects of one name', () => {
  it('is what parsing it and leaving them out gives', () => {
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, '\t'), (given, space) => {
        const text = JSON.stringify(given, null, space)
        const expected: unknown = JSON.parse(text, (key, read) =>
          key === 'logprobs' && isContainer(read) ? null : read,
        )
        const less = withoutMember(Buffer.from(text), 'logprobs')
        assert.deepEqual(JSON.parse(less.toString()), expected)
      }),
      { numRuns: 1000 },
    )
  })

  it('comes to an end where the text does not', () => {
    for (const text of ['{"logprobs":[[1', '{"logprobs":{"a":"', '{"logprobs"', '{"logprobs":', '"'])
      assert.ok(withoutMember(Buffer.from(text), 'logprobs').length <= text.length + 4)
  })
})

describe('parsing', () => {
  it('leaves them out only where there is too much of them', () => {
    const few = '{"a":[1],"logprobs":[1,2]}'
    assert.deepEqual(parseJson(few), JSON.parse(few))
    const many = `{"a":[1],"logprobs":[${'0,'.repeat(500_000)}0]}`
    assert.deepEqual(parseJson(many), { a: [1], logprobs: null })
    assert.equal(parseJson(many.replace('logprobs', 'other')), undefined)
  })
})
