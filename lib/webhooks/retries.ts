import { MAX_CLOCK_SKEW_MS } from './outbox.ts'

const FIRST_WAIT_MS = 5000
const MAX_WAIT_MS = 60 * 60_000
/** The share by which a wait is longer or shorter by chance. */
const JITTER = 0.2
/** No attempt is planned further ahead, whichever process plans it. */
export const LONGEST_WAIT_MS = MAX_WAIT_MS * (1 + JITTER) + MAX_CLOCK_SKEW_MS
/** How long an event is worth another attempt. */
const RETRY_FOR_MS = 24 * 60 * 60_000

/**
 * Returns when to try again: after 5 s, 10 s, 20 s and so on up to an hour, each a fifth longer or shorter by chance, for a
 * day after the event; then null.
 */
export function nextAttemptAt(attempts: number, eventAt: number, now: number): number | null {
  if (now - eventAt >= RETRY_FOR_MS) return null
  const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))
  return now + Math.round(wait * (1 - JITTER + 2 * JITTER * Math.random()))
}
