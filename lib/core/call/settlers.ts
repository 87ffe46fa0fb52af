import type { CallEnding } from './parts.ts'

/** When a call was made durable. Milliseconds since the epoch. */
export interface SettlingTrace {
  readonly startedAt: number
  /** null until it is done, and where it failed at once. */
  endedAt: number | null
}

/** Durable work before the end of an answer; what it throws, or rejects with, is answered instead. */
export type Settler = (ending: CallEnding) => Promise<void> | undefined

/**
 * Runs settlers one behind the other and notes how long that took. Without a promise where none is needed.
 *
 * @throws what a settler throws.
 */
export function settleAll(
  settlers: readonly Settler[],
  ending: CallEnding,
  trace: SettlingTrace,
): Promise<void> | undefined {
  const done = (): void => {
    trace.endedAt = Date.now()
  }
  const running = runFrom(settlers, 0, ending)
  if (running) return running.finally(done)
  done()
  return undefined
}

function runFrom(settlers: readonly Settler[], from: number, ending: CallEnding): Promise<void> | undefined {
  for (let i = from; i < settlers.length; i++) {
    const running = settlers[i]?.(ending)
    if (running) return running.then(() => runFrom(settlers, i + 1, ending))
  }
  return undefined
}
