import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Distance } from '../../../lib/core/store-guard/distance.ts'

function measured() {
  let now = 1_000_000
  const distance = new Distance(() => now)
  const answered = (ms: number, after = 0) => {
    now += after
    distance.answered(ms)
    return distance.ms
  }
  const reset = (ms: number, after = 0) => {
    now += after
    distance.reset(ms)
    return distance.ms
  }
  return { distance, answered, reset }
}

describe('the distance of a store', () => {
  it('is the shortest recent time of an answer, and zero before the first answer', () => {
    const { distance, answered } = measured()
    assert.equal(distance.ms, 0)
    assert.deepEqual([answered(40), answered(50), answered(30), answered(35)], [40, 40, 30, 30])
  })

  it('is 500 ms at most: a slower store is slow, not far away', () => {
    const { answered } = measured()
    assert.deepEqual([answered(501), answered(500), answered(499)], [500, 500, 499])
  })

  it('is measured over the last 15 seconds, and the 15 before', () => {
    const { answered } = measured()
    answered(10)
    assert.equal(answered(40, 14_999), 10, 'the same window')
    assert.equal(answered(40, 1), 10, 'the next one')
    assert.equal(answered(30, 14_999), 10)
    assert.equal(answered(50, 1), 30, 'the first is forgotten')
    assert.equal(answered(60, 15_000), 50)
  })

  it('is the recent time of a store that has become slow, after any history', () => {
    const { answered, reset } = measured()
    answered(10)
    answered(20, 15_000)
    assert.equal(reset(200, 10_000), 200)
    assert.deepEqual([answered(210, 14_999), answered(220, 1)], [200, 200])
    assert.equal(answered(230, 15_000), 220)
  })

  it('is measured by a monotonic clock', (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const distance = new Distance()
    distance.answered(10)
    now = 15_000
    distance.answered(20)
    now = 30_000
    distance.answered(30)
    assert.equal(distance.ms, 20)
  })
})
