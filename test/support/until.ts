import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until a condition holds; fails after `withinMs`. */
export async function until(
  condition: () => boolean,
  what = 'the condition',
  withinMs = 5000,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${withinMs} ms`)
    await sleep(5)
  }
}
