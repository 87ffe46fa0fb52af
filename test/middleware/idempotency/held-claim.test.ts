import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { HeldClaim, momentNow } from '../../../lib/middleware/idempotency/held-claim.ts'

/** Both clocks of a process, set by the test. */
function clocksOf(t: TestContext) {
  const clocks = { monotonic: 1000, wall: 1_700_000_000_000 }
  t.mock.method(performance, 'now', () => clocks.monotonic)
  t.mock.method(Date, 'now', () => clocks.wall)
  return clocks
}

describe('the age of a held claim', () => {
  it('counts from when it was asked for, and anew from each confirmed renewal', (t) => {
    const clocks = clocksOf(t)
    const held = new HeldClaim({ id: 'a', owner: 'req_a' }, 1000, momentNow())
    assert.equal(held.age, 0)
    clocks.monotonic += 40
    clocks.wall += 40
    assert.equal(held.age, 40)
    const askedAt = momentNow()
    clocks.monotonic += 5
    clocks.wall += 5
    held.confirm(askedAt)
    assert.equal(held.age, 5)
  })

  it('counts the time that a machine has slept, in which the monotonic clock stands still', (t) => {
    const clocks = clocksOf(t)
    const held = new HeldClaim({ id: 'a', owner: 'req_a' }, 1000, momentNow())
    clocks.wall += 90_000
    assert.equal(held.age, 90_000)
  })

  it('does not shrink when the wall clock is set back', (t) => {
    const clocks = clocksOf(t)
    const held = new HeldClaim({ id: 'a', owner: 'req_a' }, 1000, momentNow())
    clocks.monotonic += 50_000
    clocks.wall -= 3_600_000
    assert.equal(held.age, 50_000)
  })
})
