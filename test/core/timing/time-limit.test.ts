import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { STOOD_STILL_MS, timeLimit, within } from '../../../lib/core/timing/index.ts'

const NEVER = new Promise<string>(() => {})

function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
}

describe('a wait for a limited time', () => {
  it('returns the value of the promise and leaves no timer', async () => {
    const before = timers()
    assert.equal(
      await within(60_000, Promise.resolve('value'), () => assert.fail('it was not late')),
      'value',
    )
    assert.equal(timers(), before)
  })

  it('rejects as the promise does and leaves no timer', async () => {
    const before = timers()
    const broken = Promise.reject(new Error('broken'))
    await assert.rejects(
      within(60_000, broken, () => 'late'),
      { message: 'broken' },
    )
    assert.equal(timers(), before)
  })

  it('returns what onLate returns when the time is up', async () => {
    assert.equal(await within(1, NEVER, () => 'late'), 'late')
  })

  it('rejects with what onLate throws when the time is up', async () => {
    const late = () => {
      throw new Error('too late')
    }
    await assert.rejects(within(1, NEVER, late), { message: 'too late' })
  })

  it('starts once more after a standstill of the process, for work that stood still as well', async () => {
    const standStill = () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOOD_STILL_MS + 300)
    }
    setImmediate(standStill)
    const slow = within(250, sleep(STOOD_STILL_MS + 350, 'value'), () => 'late')
    assert.deepEqual(await Promise.all([slow, within(250, NEVER, () => 'late')]), ['value', 'late'])
  })
})

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
  it('keeps no process alive by default', (t) => {
    const { made } = oneTimer(t)
    timeLimit(200, () => {})
    assert.deepEqual([made.alive, made.ms], [false, 200])
    made.alive = true
    timeLimit(200, () => {}, true)
    assert.equal(made.alive, true)
  })

  it('keeps the process alive while it waits for a value', async (t) => {
    const { made } = oneTimer(t)
    assert.equal(await within(200, Promise.resolve(1), () => 2), 1)
    assert.deepEqual([made.alive, made.cleared], [true, 1])
  })

  it('runs after all received data was read, and not if it is cancelled before', (t) => {
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
