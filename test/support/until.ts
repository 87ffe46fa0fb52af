import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until a condition holds; fails after `withinMs`. */
export async function until(
  condition: () => boolean,
  what = 'the condition',
  withinMs = 20_000,
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
  withinMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${withinMs} ms`)
    await sleep(5)
  }
}
