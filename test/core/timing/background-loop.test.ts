import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { BackgroundLoop } from '../../../lib/core/timing/index.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A loop on a clock that stands, and the runs that have begun. */
function looping(t: TestContext, everyMs = 2000, firstMs?: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const runs: PromiseWithResolvers<void>[] = []
  const loop = new BackgroundLoop(
    () => {
      const run = Promise.withResolvers<void>()
      runs.push(run)
      return run.promise
    },
    everyMs,
    firstMs,
  )
  t.after(() => {
    for (const run of runs) run.resolve()
    return loop.close()
  })
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turn()
    return runs.length
  }
  return { loop, runs, pass }
}

describe('a background loop', () => {
  it('runs some time after each run has ended, also after a failed one', async (t) => {
    const { runs, pass } = looping(t, 500)
    assert.deepEqual([await pass(499), await pass(1)], [0, 1])
    assert.equal(await pass(5000), 1, 'one run at a time')
    runs[0]?.reject(new Error('away'))
    await turn()
    assert.deepEqual([await pass(499), await pass(1)], [1, 2])
    runs[1]?.resolve()
    await turn()
    assert.equal(await pass(500), 3)
  })

  it('has a separate delay before its first run', async (t) => {
    const { runs, pass } = looping(t, 500, 10)
    assert.deepEqual([await pass(9), await pass(1)], [0, 1])
    runs[0]?.resolve()
    await turn()
    assert.deepEqual([await pass(499), await pass(1)], [1, 2])
  })

  it('runs sooner on request, also during a run', async (t) => {
    const { loop, runs, pass } = looping(t, 500)
    loop.runIn(20)
    assert.deepEqual([await pass(19), await pass(1)], [0, 1])
    loop.runIn(20)
    runs[0]?.resolve()
    await turn()
    assert.deepEqual([await pass(19), await pass(1)], [1, 2])
    loop.runIn(20)
    assert.equal(await pass(20), 2, 'one run at a time')
    runs[1]?.resolve()
    await turn()
    assert.equal(runs.length, 3)
  })

  it('runs at once on request, after the present run', async (t) => {
    const { loop, runs } = looping(t)
    let done = 0
    const first = loop.runNow().then(() => done++)
    await turn()
    const others = [loop.runNow(), loop.runNow()].map((run) => run.then(() => done++))
    await turn()
    assert.equal(runs.length, 1)
    runs[0]?.resolve()
    await first
    await turn()
    assert.deepEqual([runs.length, done], [2, 1], 'one run is enough for both')
    runs[1]?.resolve()
    await Promise.all(others)
    assert.equal(done, 3)
  })

  it('reports a failure to the caller that requested the run, and to no later one', async (t) => {
    const { loop, runs } = looping(t)
    const failed = assert.rejects(loop.runNow(), /away/)
    await turn()
    const next = loop.runNow()
    runs[0]?.reject(new Error('away'))
    await failed
    await turn()
    runs[1]?.resolve()
    await next
  })

  it('does not run after it was closed, and close waits for the present run', async (t) => {
    const { loop, runs, pass } = looping(t)
    assert.equal(loop.closed, false)
    await pass(2000)
    const later = loop.wake()
    let isClosed = false
    const closing = loop.close().then(() => {
      isClosed = true
    })
    await turn()
    assert.deepEqual([loop.closed, isClosed], [true, false])
    runs[0]?.reject(new Error('away'))
    await Promise.all([closing, later])
    loop.runIn(10)
    await loop.wake()
    assert.equal(await pass(10_000), 1)
    const asked = loop.runNow()
    runs[1]?.resolve()
    await asked
    assert.equal(await pass(10_000), 2, 'only one that is asked for')
  })
})
