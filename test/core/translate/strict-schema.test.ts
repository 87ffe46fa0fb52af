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
})
