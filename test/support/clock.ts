import type { TestContext } from 'node:test'

/** The monotonic clock of this process, moved or stopped by a test; timers run on. */
export interface Clock {
  /** Moves it. */
  pass(ms: number): void
  /** Stops it where it is. */
  stop(): void
}

/** Takes hold of the clock until the end of the test. */
export function clockOf(t: TestContext): Clock {
  const real = performance.now.bind(performance)
  let ahead = 0
  let stopped: number | undefined
  t.mock.method(performance, 'now', () => (stopped ?? real()) + ahead)
  return {
    pass(ms) {
      ahead += ms
    },
    stop() {
      stopped = real()
    },
  }
}
