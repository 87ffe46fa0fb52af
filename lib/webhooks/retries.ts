const FIRST_WAIT_MS = 5000
const MAX_WAIT_MS = 60 * 60_000
/** How long an event is worth another attempt. */
const RETRY_FOR_MS = 24 * 60 * 60_000

/**
 * Returns when to try again: after 5 s, 10 s, 20 s and so on up to an hour, each a fifth longer or shorter by chance, for a
 * day after the event; then null.
 */
export function nextAttemptAt(attempts: number, eventAt: number, now: number): number | null {
  if (now - eventAt >= RETRY_FOR_MS) return null
  const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))
  return now + Math.round(wait * (0.8 + 0.4 * Math.random()))
}
