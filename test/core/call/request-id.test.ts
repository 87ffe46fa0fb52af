import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isRequestId, newRequestId } from '../../../lib/core/call/index.ts'

describe('request ids', () => {
  it('are all different, also many within one millisecond', () => {
    const ids = new Set<string>()
    for (let i = 0; i < 50_000; i++) ids.add(newRequestId(1_800_000_000_000))
    assert.equal(ids.size, 50_000)
  })

  it('sort by the time they were made', () => {
    const time = fc.integer({ min: 0, max: 32 ** 9 })
    fc.assert(
      fc.property(time, time, (a, b) => {
        if (a !== b) assert.equal(newRequestId(a) < newRequestId(b), a < b)
      }),
    )
  })

  it('sort in the order in which they were made, also within a millisecond', () => {
    for (let time = 1_800_000_000_000; time < 1_800_000_000_200; time++) {
      const ids = Array.from({ length: 500 }, () => newRequestId(time))
      assert.deepEqual(ids, ids.toSorted())
    }
  })

  it('keep that order with ids of other times made in between, and when the clock is set back', () => {
    for (const first of [1_900_000_000_000, 1_700_000_000_000])
      for (let time = first; time < first + 200; time++) {
        const ids = Array.from({ length: 200 }, (_, i) => {
          newRequestId(time - i)
          return newRequestId(time)
        })
        assert.deepEqual(ids, ids.toSorted())
      }
  })

  it('have one form, and no other text has it', () => {
    const id = newRequestId()
    assert.match(id, /^req_[0-9a-hjkmnp-tv-z]{26}$/)
    assert.equal(isRequestId(id), true)
    for (const other of [
      '',
      'req_',
      id.slice(0, -1),
      `${id}0`,
      id.toUpperCase(),
      ` ${id}`,
      `${id}\n`,
      `x${id}`,
    ])
      assert.equal(isRequestId(other), false, JSON.stringify(other))
  })

  it('cannot be guessed from one another: every random place varies', () => {
    const ids = Array.from({ length: 2000 }, () => newRequestId(1))
    for (let place = 16; place < 30; place++)
      assert.ok(new Set(ids.map((id) => id[place])).size > 16, `place ${place}`)
    const firsts = Array.from({ length: 2000 }, (_, i) => newRequestId(i).slice(14, 16))
    assert.ok(new Set(firsts).size > 400, 'a millisecond does not tell how many calls came in one before it')
  })
})
