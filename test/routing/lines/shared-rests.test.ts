import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { exchangeAll, processes } from '../support/line-processes.ts'

/** Stops the clock. Returns what sets it forward. */
function stoppedClock(t: TestContext): (ms: number) => void {
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  return (ms) => {
    now += ms
  }
}

describe('a rest shared by several processes', () => {
  it('applies in all of them for its remaining time, and the longest counts', async (t) => {
    const pass = stoppedClock(t)
    const all = processes(t)
    const [one, other, third] = all
    const rests = () => all.map(({ model }) => model.restMs)
    one.model.rest(15_000)
    await exchangeAll(one, other)
    pass(4000)
    await exchangeAll(third)
    assert.deepEqual(rests(), [11_000, 11_000, 11_000])
    other.model.rest(30_000)
    await exchangeAll(...all)
    pass(5000)
    assert.deepEqual(rests(), [25_000, 25_000, 25_000])
    one.model.rest(1000)
    await exchangeAll(...all)
    assert.deepEqual(rests(), [25_000, 25_000, 25_000])
  })

  it('without a requested wait grows in all of them', async (t) => {
    const [one, other] = processes(t)
    one.model.rest(undefined)
    await exchangeAll(one, other)
    assert.deepEqual([one.model.recovering, other.model.recovering], [true, true])
    assert.ok(other.model.restMs > 0)
  })

  it('that is lifted in one process after the other does not return', async (t) => {
    const all = processes(t)
    const [one, other, third] = all
    const rests = () => all.map(({ model }) => model.restMs > 0)
    one.model.rest(15_000)
    await exchangeAll(...all)
    assert.deepEqual(rests(), [true, true, true])
    other.model.lift()
    await exchangeAll(third, one, other)
    assert.deepEqual(rests(), [true, false, true])
    for (const { model } of [one, third]) model.lift()
    await exchangeAll(...all)
    assert.deepEqual(rests(), [false, false, false])
    third.model.rest(15_000)
    await exchangeAll(...all)
    assert.deepEqual(rests(), [true, true, true], 'but another one is told')
  })
})
