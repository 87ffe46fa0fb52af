import type { CallEnding } from './parts.ts'

/** When a call was made durable. Times are milliseconds since the epoch. */
export interface SettlingTrace {
  readonly startedAt: number
  /** null until it is done, and if it failed at once. */
  endedAt: number | null
}

/** Does durable work before the end of an answer. If it throws or rejects, the error is answered instead. */
export type Settler = (ending: CallEnding) => Promise<void> | undefined

/**
 * Waits for a settler, then runs the following ones one after another, and records the time when the last has ended.
 *
 * @throws the error of a settler, as a rejection.
 */
export async function settleOn(
  running: Promise<void>,
  others: readonly Settler[],
  ending: CallEnding,
  trace: SettlingTrace,
): Promise<void> {
  try {
    await running
    for (const settler of others) await settler(ending)
  } finally {
    trace.endedAt = Date.now()
  }
}
