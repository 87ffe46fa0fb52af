import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { timeLimit } from '../../../lib/core/timing/index.ts'

/** A clock and one timer that a test moves. `late` is how much later than asked for the timer fires. */
function clocked(t: TestContext) {
  let now = 5000
  let fires: (() => void) | undefined
  t.mock.method(performance, 'now', () => now)
  t.mock.method(globalThis, 'clearTimeout', () => (fires = undefined))
  t.mock.method(globalThis, 'setImmediate', (run: () => void) => run())
  t.mock.method(globalThis, 'setTimeout', (run: () => void) => {
    fires = run
    return { unref() {}, refresh: () => (fires = run) }
  })
  return (ms: number, late = 0): void => {
    now += ms + late
    const due = fires
    fires = undefined
    due?.()
  }
}

for (const { late, calls } of [
  { late: 0, calls: 1 },
  { late: 1, calls: 1 },
  { late: 999, calls: 1 },
  { late: 1000, calls: 0 },
  { late: 1001, calls: 0 },
  { late: 60_000, calls: 0 },
]) {
  test(`a timer that fires ${late} ms late has run ${calls} times, and once after the same time again`, (t) => {
    const pass = clocked(t)
    let ran = 0
    timeLimit(200, () => ran++)
    pass(200, late)
    assert.equal(ran, calls)
    pass(200, late)
    assert.equal(ran, 1)
    pass(1000)
    assert.equal(ran, 1)
  })
}

test('a limit that is cancelled after a standstill does not run', (t) => {
  const pass = clocked(t)
  let ran = 0
  const cancel = timeLimit(200, () => ran++)
  pass(200, 5000)
  cancel()
  pass(1000)
  assert.equal(ran, 0)
})
