import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { LONGEST_WAIT_MS, nextAttemptAt } from '../../../lib/management/webhooks/webhook-sender.ts'

const DAY_MS = 86_400_000

describe('the next attempt', () => {
  it('comes after a wait that doubles up to an hour, give or take a fifth, for a day after the event', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 0, max: 3 * DAY_MS }),
        (attempts, age) => {
          const now = 1_767_225_600_000
          const next = nextAttemptAt(attempts, now - age, now)
          if (age >= DAY_MS) return next === null
          const wait = Math.min(3_600_000, 5000 * 2 ** (attempts - 1))
          return next !== null && next - now >= wait * 0.8 - 1 && next - now <= wait * 1.2 + 1
        },
      ),
    )
  })

  it('does not seem further ahead than any to a process whose clock is ten minutes behind', (t) => {
    t.mock.method(Math, 'random', () => 0.999)
    const now = 1_767_225_600_000
    assert.ok(Number(nextAttemptAt(20, now, now)) <= now - 600_000 + LONGEST_WAIT_MS)
  })

  it('comes some thirty times in all', () => {
    let now = 0
    let attempts = 0
    for (let next: number | null = 0; next !== null; next = nextAttemptAt(++attempts, 0, now)) now = next
    assert.ok(attempts > 25 && attempts < 45, `${attempts} attempts`)
  })
})
