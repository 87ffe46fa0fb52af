import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkedFunction } from '../../../lib/core/own-functions/index.ts'

const aList = { be: 'a list', accepts: (value: unknown) => Array.isArray(value) }

describe('a function of the app', () => {
  it('is refused for a bad answer, also after good ones', () => {
    const good = [1]
    const given: unknown[] = [good, good, 'nonsense', good, undefined, Promise.resolve(good), [2]]
    const own = checkedFunction('"own"', aList, (i: number) => given[i])
    assert.equal(own(0), good)
    assert.equal(own(1), good)
    assert.throws(() => own(2), new TypeError('"own" must return a list, not a string'))
    assert.equal(own(3), good)
    assert.throws(() => own(4), TypeError)
    assert.throws(() => own(5), new TypeError('"own" must return a list, not a promise of it'))
    assert.deepEqual(own(6), [2])
  })

  it('is not asked twice about an answer that was accepted last time', () => {
    let asked = 0
    const counting = { be: 'anything', accepts: () => ++asked > 0 }
    const own = checkedFunction('"own"', counting, (answer: object) => answer)
    const [one, other] = [{}, {}]
    for (const answer of [one, one, one, other, one]) own(answer)
    assert.equal(asked, 3)
  })
})
