import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compileAllowList } from '../../../lib/core/catalog/index.ts'
import { cpuMsOf } from '../../support/cpu-time.ts'

/** The meaning of a pattern, as a regular expression. */
function model(pattern: string): RegExp {
  return new RegExp(`^${pattern.replace(/[.-]/g, '\\$&').replaceAll('*', '[^]*')}$`)
}

describe('an allow-list of names', () => {
  it('means what the same regular expressions mean', () => {
    const few = fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', '\n'), maxLength: 8 })
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', '*', '*'), maxLength: 7 })
    let matched = 0
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 3 }), few, (patterns, name) => {
        const expected = patterns.some((one) => model(one).test(name))
        if (expected) matched++
        assert.equal(compileAllowList(patterns)(name), expected)
      }),
      { numRuns: 10_000 },
    )
    assert.ok(matched > 500, 'both answers occur')
  })

  it('allows everything if it is missing, and nothing if it is empty', () => {
    assert.equal(compileAllowList(undefined)('anything'), true)
    assert.equal(compileAllowList([])('anything'), false)
  })

  it('takes regular-expression characters literally', () => {
    const allows = compileAllowList(['gpt-4.1', 'a(b', 'claude-*', '[x]*'])
    assert.deepEqual(['gpt-4.1', 'gpt-4x1', 'a(b', 'claude-', 'claude-opus/5', 'x', '[x]y'].map(allows), [
      true,
      false,
      true,
      true,
      true,
      false,
      true,
    ])
  })

  it('cannot cause backtracking', () => {
    const ms = cpuMsOf(() => {
      assert.equal(compileAllowList([`${'a*'.repeat(100)}b`])('a'.repeat(100_000)), false)
    })
    assert.ok(ms < 1000, `${ms} ms`)
  })
})
