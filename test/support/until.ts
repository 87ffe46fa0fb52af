import { setTimeout as sleep } from 'node:timers/promises'

/** Less than a test may take, and more than a busy machine needs. */
const WITHIN_MS = 45_000

/** Waits until a condition holds; fails after `withinMs`. */
export async function until(
  condition: () => boolean,
  what = 'the condition',
  withinMs = WITHIN_MS,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${withinMs} ms`)
    await sleep(5)
  }
}

/** {@link until} for what has to be asked for; the questions do not overlap. */
export async function untilAsync(
  condition: () => Promise<boolean>,
  what = 'the condition',
  withinMs = WITHIN_MS,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${withinMs} ms`)
    await sleep(5)
  }
}
