import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreAway, StoreGuard, type StoreGuardOptions } from '../../../lib/core/store-guard/store-guard.ts'
import { machine } from '../../../lib/core/timing/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const DOWN = new Error('down')
const fails = () => Promise.reject(DOWN)
const answers = async () => 'here'
const turn = () => new Promise(setImmediate)

/** A guard on clocks that a test moves. */
function guarded(t: TestContext, options: Partial<StoreGuardOptions> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 50_000 })
  // The real machine may be busy.
  t.mock.method(machine, 'limit', (ms: number) => ms)
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const logger = recordingLogger()
  const changes: boolean[] = []
  const guard = new StoreGuard({
    name: 'store',
    logger,
    onStoreChange: (away) => changes.push(away),
    ...options,
  })
  const advance = async (ms: number, step = 1) => {
    for (let passed = 0; passed < ms; passed += step) {
      now += step
      t.mock.timers.tick(step)
      await turn()
    }
    await turn()
  }
  return { guard, logger, changes, advance }
}

/** The state of an operation: `running` until the result is known. */
function watched<T>(operation: Promise<T>) {
  const seen: { state: unknown } = { state: 'running' }
  operation.then(
    (answer) => {
      seen.state = answer
    },
    (error: unknown) => {
      seen.state = error
    },
  )
  return seen
}

describe('a store', () => {
  it('has 250 ms to answer, plus the time slice of the request', async (t) => {
    const { guard, advance, logger, changes } = guarded(t)
    const seen = watched(guard.run(() => new Promise(() => {})))
    await advance(274)
    assert.deepEqual([seen.state], ['running'])
    await advance(1)
    assert.ok(seen.state instanceof StoreAway)
    assert.equal(seen.state.message, 'store did not answer in 250 ms')
    assert.deepEqual([guard.away, guard.outages, changes], [true, 1, [true]])
    assert.deepEqual(logger.lines, [
      { level: 'error', message: 'store is away', fields: { err: seen.state, store: 'store' } },
    ])
  })

  it('gives an operation the longer limit while it answers others, and only then', async (t) => {
    const { guard, advance } = guarded(t, { timeoutMs: 100, lateTimeoutMs: 400 })
    const late = watched(guard.run(() => new Promise(() => {})))
    for (let passed = 0; passed < 400; passed += 50) {
      await advance(50, 5)
      assert.equal(await guard.run(answers), 'here')
    }
    assert.equal(late.state, 'running')
    await advance(15, 5)
    assert.match(`${late.state}`, /did not answer in 400 ms/)
    assert.equal(guard.away, false)
    // A store that freezes has answered others just before.
    const frozen = watched(guard.run(() => new Promise(() => {})))
    await advance(5, 5)
    assert.equal(await guard.run(answers), 'here')
    await advance(130, 5)
    assert.match(`${frozen.state}`, /did not answer in 100 ms/)
    const silent = watched(guard.run(() => new Promise(() => {})))
    await advance(115, 5)
    assert.match(`${silent.state}`, /did not answer in 100 ms/)
    assert.equal(guard.away, true)
  })

  it('logs that a part of it is away, and that it is back after a minute without a late answer', async (t) => {
    const effect = 'calls wait'
    const { guard, advance, logger, changes } = guarded(t, { timeoutMs: 100, lateTimeoutMs: 400, effect })
    const store = 'a part of store'
    const answerFor = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 50) {
        await advance(50, 10)
        await guard.run(answers)
      }
    }
    for (const began of [0, 1]) {
      const late = watched(guard.run(() => new Promise(() => {})))
      await answerFor(500)
      assert.match(`${late.state}`, /did not answer in 400 ms/, `${began}`)
    }
    await answerFor(59_000)
    const gone = ['error', 'store is away', store, effect]
    assert.deepEqual(shown(), [gone])
    await answerFor(1000)
    assert.deepEqual(shown(), [gone, ['warn', 'store is back', store, undefined]])
    assert.deepEqual([guard.away, guard.outages, changes], [false, 0, []])

    function shown() {
      return logger.lines.map(({ level, message, fields }) => {
        const { store, effect } = fields as { store?: string; effect?: string }
        return [level, message, store, effect]
      })
    }
  })

  it('may have a different time limit for each operation', async (t) => {
    const { guard, advance } = guarded(t, { timeoutMs: 100 })
    const first = watched(guard.run(() => new Promise(() => {})))
    await advance(55, 5)
    const second = watched(guard.insist(() => new Promise(() => {})))
    await advance(55, 5)
    assert.deepEqual([first.state instanceof StoreAway, second.state], [true, 'running'])
    await advance(45, 5)
    assert.deepEqual([second.state], ['running'])
    await advance(15, 5)
    assert.ok(second.state instanceof StoreAway)
  })

  it('is away once an operation fails, for all operations, and probed every half second', async (t) => {
    const { guard, advance, changes } = guarded(t)
    await assert.rejects(guard.run(fails), { name: 'StoreAway', message: 'store failed', cause: DOWN })
    await assert.rejects(guard.run(answers), { name: 'StoreAway', message: 'store is away' })
    await advance(499)
    assert.equal(guard.mayAsk(), false)
    await advance(1)
    assert.deepEqual([guard.mayAsk(), guard.mayAsk()], [true, false])
    await advance(499)
    await assert.rejects(guard.retry(answers), { message: 'store is away' })
    await advance(1)
    assert.equal(await guard.retry(answers), 'here')
    assert.deepEqual(
      [guard.away, guard.mayAsk(), guard.mayAsk(), changes],
      [false, true, true, [true, false]],
    )
  })

  it('is probed as often as configured', async (t) => {
    const { guard, advance } = guarded(t, { probeMs: 30 })
    await assert.rejects(guard.run(fails))
    await advance(29)
    assert.equal(guard.mayAsk(), false)
    await advance(1)
    assert.equal(guard.mayAsk(), true)
  })

  it('is logged once as away and once as back, with the effect on callers and the duration', async (t) => {
    const effect = 'calls wait'
    const { guard, advance, logger, changes } = guarded(t, { effect })
    await assert.rejects(guard.run(fails))
    await assert.rejects(guard.insist(fails))
    await advance(1234)
    await guard.insist(answers)
    await guard.run(answers)
    assert.deepEqual(
      logger.lines.map(({ level, message, fields }) => [level, message, fields]),
      [
        ['error', 'store is away', { err: DOWN, store: 'store', effect }],
        ['warn', 'store is back', { store: 'store', forMs: 1234 }],
      ],
    )
    assert.deepEqual([changes, guard.outages], [[true, false], 1])
    await assert.rejects(guard.run(fails))
    assert.equal(guard.outages, 2)
  })

  it('has an outage duration that does not depend on the wall clock', async (t) => {
    const { guard, advance, logger } = guarded(t)
    await assert.rejects(guard.run(fails))
    await advance(700)
    t.mock.timers.setTime(10_000)
    await guard.run(answers)
    assert.deepEqual(logger.lines.at(-1)?.fields, { store: 'store', forMs: 700 })
  })

  it('is not away if a retried operation throws before it is sent', async (t) => {
    const { guard } = guarded(t)
    const throws = () => {
      throw DOWN
    }
    await assert.rejects(guard.retry(throws), { cause: DOWN })
    assert.equal(guard.away, false)
    await assert.rejects(guard.run(throws), { cause: DOWN })
    assert.equal(guard.away, true)
  })

  it('is not away if one operation is late after another was answered, but is away if one fails', async (t) => {
    const { guard, advance, changes } = guarded(t)
    let answer = (_: unknown) => {}
    const late = watched(guard.run(() => new Promise(() => {})))
    const failing = watched(
      guard.run(
        () =>
          new Promise((_, reject) => {
            answer = reject
          }),
      ),
    )
    await advance(1)
    await guard.run(answers)
    await advance(300)
    assert.deepEqual([late.state instanceof StoreAway, guard.away, changes], [true, false, []])
    answer(DOWN)
    await turn()
    assert.ok(failing.state instanceof StoreAway)
    const other = guard.run(fails)
    await assert.rejects(other, { message: 'store failed' })
    assert.equal(guard.away, true)
  })

  it('is not away if one operation is late at the moment when another is answered', async (t) => {
    const { guard, advance } = guarded(t)
    const late = watched(guard.run(() => new Promise(() => {})))
    await guard.run(answers)
    await advance(300)
    assert.deepEqual([late.state instanceof StoreAway, guard.away], [true, false])
  })

  it('is logged on the console if no logger is set', async (t) => {
    const told = t.mock.method(console, 'error', () => {})
    const guard = new StoreGuard({ name: 'store' })
    await assert.rejects(guard.run(fails), { cause: DOWN })
    assert.deepEqual(told.mock.calls[0]?.arguments, ['store is away', { err: DOWN, store: 'store' }])
  })

  it('is not affected by a late answer', async (t) => {
    const { guard, advance, changes } = guarded(t)
    let answer = (_: unknown) => {}
    const late = watched(
      guard.run(
        () =>
          new Promise((resolve) => {
            answer = resolve
          }),
      ),
    )
    await advance(275)
    answer('late')
    await turn()
    assert.ok(late.state instanceof StoreAway)
    assert.deepEqual([guard.away, changes], [true, [true]])
  })
})
