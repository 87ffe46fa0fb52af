import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { StoreGuard } from '../../../lib/core/store-guard/store-guard.ts'
import { machine } from '../../../lib/core/timing/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const NEAR_MS = 250
const FAR_MS = 1500
/** An operation has its slice besides. */
const PROBE_MS = 500

/** A store whose delay the test sets, and a guard of it, on clocks of the test. */
function slowStore(t: TestContext, farTimeoutMs?: number) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 50_000 })
  let now = 0
  // The real machine may be busy.
  t.mock.method(machine, 'limit', (ms: number) => ms)
  const clock = t.mock.method(performance, 'now', () => now)
  const logger = recordingLogger()
  const guard = new StoreGuard({
    name: 'store',
    logger,
    timeoutMs: NEAR_MS,
    ...(farTimeoutMs !== undefined && { farTimeoutMs }),
  })
  const advance = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      now += 5
      t.mock.timers.tick(5)
      await new Promise(setImmediate)
    }
  }
  return {
    guard,
    advance,
    /** Whether the store is heard, which answers after so many milliseconds. */
    async ask(takes: number): Promise<boolean> {
      const asked = guard
        .run(() => new Promise((resolve) => setTimeout(resolve, takes)))
        .then(
          () => true,
          () => false,
        )
      await advance(takes + NEAR_MS / 5)
      return asked
    },
    end() {
      clock.mock.restore()
      t.mock.timers.reset()
    },
  }
}

describe('a store that becomes slow', () => {
  it('is used again after the next probe while it is slow, and after it has recovered', async (t) => {
    const slowness = fc.integer({ min: 60, max: 260 }).map((fives) => fives * 5)
    await fc.assert(
      fc.asyncProperty(slowness, fc.integer({ min: 0, max: 20 }), async (slow, quick) => {
        const { guard, ask, advance, end } = slowStore(t, FAR_MS)
        try {
          for (let i = 0; i < 3; i++) assert.equal(await ask(quick), true)
          assert.equal(await ask(slow), false)
          assert.equal(guard.away, true)
          await advance(PROBE_MS)
          for (let i = 0; i < 20; i++) assert.equal(await ask(slow), true, `${i}`)
          assert.deepEqual([guard.away, guard.outages], [false, 1])
          assert.equal(await ask(quick), true)
          assert.equal(await ask(FAR_MS), false, 'it is near again')
        } finally {
          end()
        }
      }),
      { numRuns: 20 },
    )
  })

  it('then has a limit of five times its last duration', async (t) => {
    for (const slow of [300, 350, 400]) {
      const { guard, ask, advance, end } = slowStore(t, 2400)
      await advance(1000)
      assert.equal(await ask(slow), false)
      await advance(PROBE_MS)
      assert.equal(await ask(5 * slow), true, `${slow}`)
      // The slice in which it is asked is as much as half of what it took.
      assert.equal(await ask(5.5 * slow + 10), false, `${slow}`)
      assert.equal(guard.away, true)
      end()
    }
  })

  it('stays away if its limit cannot grow as far as its duration', async (t) => {
    const { guard, ask, advance, end } = slowStore(t)
    for (let i = 0; i < 4; i++) {
      assert.equal(await ask(400), false)
      await advance(PROBE_MS)
    }
    assert.equal(guard.away, true)
    end()
  })

  it('that is slow once, while others are answered, keeps its limit', async (t) => {
    const { guard, advance, ask, end } = slowStore(t, FAR_MS)
    assert.equal(await ask(1), true)
    const late = guard.run(() => new Promise((resolve) => setTimeout(resolve, 600)))
    const refused = assert.rejects(late, { message: `store did not answer in ${NEAR_MS} ms` })
    await advance(100)
    assert.equal(await ask(1), true)
    await advance(600)
    await refused
    assert.equal(guard.away, false)
    assert.equal(await ask(400), false)
    end()
  })
})
