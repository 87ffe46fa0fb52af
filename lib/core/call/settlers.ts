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
 * Waits for a settler, then runs those behind it one after the other, and notes when the last has ended.
 *
 * @throws what a settler throws, as a rejection.
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
