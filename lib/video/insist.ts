import { setTimeout as pause } from 'node:timers/promises'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000

/**
 * Asks a store for what has to be known, again and again while it is away.
 *
 * @param forMs for how long.
 * @throws what it threw last.
 */
export async function insist<T>(ask: () => Promise<T>, forMs: number): Promise<T> {
  const deadline = performance.now() + forMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() + pauseMs > deadline) throw error
      await pause(pauseMs)
    }
  }
}
