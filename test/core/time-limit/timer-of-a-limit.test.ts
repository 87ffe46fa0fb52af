import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { timeLimit, within } from '../../../lib/core/time-limit/index.ts'

/** One timer that a test fires, and whether it keeps the process alive. */
function oneTimer(t: TestContext) {
  let fire = () => {}
  const made = { alive: true, cleared: 0, ms: 0 }
  const queued: (() => void)[] = []
  t.mock.method(performance, 'now', () => 0)
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    fire = run
    made.ms = ms
    return { unref: () => (made.alive = false), refresh() {} }
  })
  t.mock.method(globalThis, 'clearTimeout', () => made.cleared++)
  t.mock.method(globalThis, 'setImmediate', (run: () => void) => queued.push(run))
  t.mock.method(globalThis, 'clearImmediate', (read: number | undefined) => {
    if (read !== undefined) delete queued[read - 1]
  })
  return { made, fire: () => fire(), readAll: () => queued.forEach((run) => void run()) }
}

describe('the timer of a limit', () => {
  it('keeps no process alive, unless it is asked to', (t) => {
    const { made } = oneTimer(t)
    timeLimit(200, () => {})
    assert.deepEqual([made.alive, made.ms], [false, 200])
    made.alive = true
    timeLimit(200, () => {}, true)
    assert.equal(made.alive, true)
  })

  it('keeps a process alive that waits for a value', async (t) => {
    const { made } = oneTimer(t)
    assert.equal(await within(200, Promise.resolve(1), () => 2), 1)
    assert.deepEqual([made.alive, made.cleared], [true, 1])
  })

  it('runs once all that has arrived is read, and not where it is cancelled until then', (t) => {
    const { fire, readAll } = oneTimer(t)
    let ran = 0
    timeLimit(200, () => ran++)
    fire()
    assert.equal(ran, 0)
    readAll()
    assert.equal(ran, 1)
    const cancel = timeLimit(200, () => assert.fail('it is cancelled'))
    fire()
    cancel()
    readAll()
  })
})
