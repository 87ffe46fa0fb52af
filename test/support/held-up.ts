import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { TestContext } from 'node:test'

/**
 * Watches how long this process is held up, by its own work or by others on the machine. What a caller here measures of
 * somebody else's time holds such a delay up to twice: when it asks, and when it reads the answer.
 *
 * @returns what the worst delay adds to a measured time, in milliseconds.
 */
export function watchHeldUp(t: TestContext): () => number {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  t.after(() => delay.disable())
  return () => (2 * delay.max) / 1e6
}
