import type { TestContext } from 'node:test'

/** Time that passes when the test says so, on all clocks. */
export function clockOf(t: TestContext): { pass(ms: number): void; tick(ms: number): void } {
  // Whole milliseconds: sums of others are not exact.
  let passed = Math.ceil(performance.now())
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() })
  t.mock.method(performance, 'now', () => passed)
  return {
    pass: (ms) => {
      passed += ms
    },
    tick: (ms) => {
      passed += ms
      t.mock.timers.tick(ms)
    },
  }
}
