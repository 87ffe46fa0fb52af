import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { MemoryLimitStore } from '../../../lib/middleware/rate-limit/index.ts'
import { demand, limit, WINDOW_MS } from './demands.ts'

const NOW = 1_700_000_000_000
let store: MemoryLimitStore
beforeEach(() => {
  store = new MemoryLimitStore()
})
const at = (t: TestContext, ms: number) => t.mock.timers.setTime(NOW + ms)

describe('the verdict on a demand', () => {
  it('of several limits that refuse alike names the first, and else the one with the longest wait', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: NOW })
    const [one, two] = [limit('rpm', 'a', 1), limit('rpm', 'b', 1)]
    store.admit(demand([one, two]))
    const { refusedBy, waitMs } = store.admit(demand([one, two]))
    assert.deepEqual([refusedBy, waitMs], [one, WINDOW_MS])
    assert.equal(store.admit(demand([two, one])).refusedBy, two)
    at(t, 10_000)
    const later = limit('rpm', 'c', 1)
    store.admit(demand([later]))
    for (const limits of [
      [one, later],
      [later, one],
    ])
      assert.deepEqual(
        [store.admit(demand(limits)).refusedBy, store.admit(demand(limits)).waitMs],
        [later, WINDOW_MS],
      )
  })

  it('tells what is used of each window and when that ends, and counts only what is admitted', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: NOW })
    const tokens = (cost: number) => limit('tpm', 'a', 10, cost)
    assert.deepEqual(store.admit(demand([tokens(4)])).counts, [{ used: 4, resetMs: WINDOW_MS }])
    at(t, 1000)
    const refused = store.admit(demand([tokens(7)]))
    assert.deepEqual([refused.counts, refused.waitMs], [[{ used: 4, resetMs: 59_000 }], 59_000])
    assert.deepEqual(store.admit(demand([tokens(6)])).counts, [{ used: 10, resetMs: 59_000 }])
    at(t, WINDOW_MS - 1)
    assert.deepEqual(store.admit(demand([tokens(1)])).refusedBy, tokens(1))
    at(t, WINDOW_MS)
    assert.deepEqual(store.admit(demand([tokens(3)])).counts, [{ used: 3, resetMs: WINDOW_MS }])
    assert.deepEqual(store.admit(demand([tokens(7)])).counts, [{ used: 10, resetMs: WINDOW_MS }])
  })

  it('counts nothing anywhere of a demand that one limit refuses', () => {
    const [wide, narrow, slot] = [limit('rpm', 'a', 9), limit('tpm', 'b', 1), limit('concurrency', 'c', 1)]
    const held = demand([narrow])
    store.admit(held)
    store.admit(demand([wide, narrow, slot]))
    assert.deepEqual(store.admit(demand([wide])).counts[0]?.used, 1)
    assert.equal(store.admit(demand([slot])).refusedBy, undefined, 'nor holds a slot')
  })

  it('refuses the demand that finds no slot, for the shortest wait there is', () => {
    const slot = limit('concurrency', 'a', 2)
    const [first, second, third] = [demand([slot]), demand([slot]), demand([slot, limit('rpm', 'a', 5)])]
    for (const each of [first, second, first]) assert.equal(store.admit(each).refusedBy, undefined)
    const { refusedBy, waitMs, counts } = store.admit(third)
    assert.deepEqual([refusedBy, waitMs, counts], [slot, 1000, [{ used: 0, resetMs: WINDOW_MS }]])
    store.release(demand([slot]))
    assert.equal(store.admit(third).refusedBy, slot, 'who holds none gives none back')
    store.release(second)
    store.release(second)
    assert.equal(store.admit(third).refusedBy, undefined)
    assert.equal(store.admit(demand([slot])).refusedBy, slot)
  })

  it('finds the slots taken of calls that were not asked for', () => {
    const slot = limit('concurrency', 'a', 1)
    const held = demand([slot])
    store.hold(held)
    assert.equal(store.admit(demand([slot])).refusedBy, slot)
    store.release(held)
    assert.equal(store.admit(demand([slot])).refusedBy, undefined)
  })

  it('is the owed wait of a sender that asked early, in the name of the limit that refused it', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: NOW })
    const [full, free] = [limit('rpm', 'a', 1), limit('tpm', 'a', 100, 1)]
    const ask = (limits = [free, full]) => store.admit(demand(limits, { sender: 'key:a' }))
    ask()
    ask()
    at(t, 2000)
    assert.deepEqual([ask().refusedBy, ask().waitMs], [full, 60_000])
    assert.equal(ask([free]).refusedBy, undefined, 'where that one is not asked, there is no wait')
    const slot = limit('concurrency', 'a', 1)
    const { refusedBy, waitMs } = ask([slot])
    assert.deepEqual([refusedBy, waitMs], [undefined, 0], 'nor for a slot alone')
    assert.equal(ask([slot]).refusedBy, slot, 'it is taken')
    assert.equal(store.admit(demand([free])).refusedBy, undefined, 'nor for others')
  })

  it('excuses an early retry for each call that ended meanwhile', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: NOW })
    const ask = () => store.admit(demand([limit('rpm', 'a', 1)], { sender: 'key:a' })).waitMs
    ask()
    assert.equal(ask(), 60_000)
    at(t, 5000)
    store.ended('key:a')
    assert.deepEqual([ask(), ask()], [55_000, 56_000])
  })
})
