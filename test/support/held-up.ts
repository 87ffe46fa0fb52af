import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { TestContext } from 'node:test'
import { machine } from '../../lib/core/timing/index.ts'

/** The time that a gateway gives its stores, on a machine that is not busy. */
const STORES_TAKE_MS = 1000
const EVERY_MS = 100

/**
 * Watches how long this process is held up, by its own work or by others on the machine. What a caller here measures of
 * somebody else's time holds such a delay up to twice: when it asks, and when it reads the answer. A gateway on the same
 * machine meanwhile lets its stores take longer.
 *
 * @returns what the worst delay adds to a measured time, in milliseconds.
 */
export function watchHeldUp(t: TestContext): () => number {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  let longerMs = 0
  const timer = setInterval(() => {
    longerMs = Math.max(longerMs, machine.limit(STORES_TAKE_MS) - STORES_TAKE_MS)
  }, EVERY_MS)
  t.after(() => {
    clearInterval(timer)
    delay.disable()
  })
  return () => (2 * delay.max) / 1e6 + longerMs
}
