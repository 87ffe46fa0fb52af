import type { Logger } from 'express-model-gateway'

const CHECK_INTERVAL_MS = 1000
/** A clock that is corrected little by little moves by less in a second. */
const JUMP_MS = 2000

/** A line, as calls of this process find it. */
export interface WatchedLine {
  readonly id: string
  readonly down: boolean
  /** Why the last attempt failed; null if it did not. */
  readonly failure: string | null
}

/**
 * Logs failures of whole lines and clock jumps. Checks every second.
 *
 * @returns a function that ends this.
 */
export function logHealth(lines: () => readonly WatchedLine[], logger: Logger): () => void {
  const down = new Set<string>()
  let offset = wallOffset()

  function check(): void {
    for (const line of lines()) {
      if (line.down === down.has(line.id)) continue
      if (line.down) {
        down.add(line.id)
        logger.error({ line: line.id, reason: line.failure }, 'a line is down: no call succeeds on it')
      } else {
        down.delete(line.id)
        logger.warn({ line: line.id }, 'a line is no longer down: calls succeed on it again, or none came')
      }
    }
    const moved = wallOffset() - offset
    offset += moved
    if (Math.abs(moved) >= JUMP_MS)
      logger.warn(
        { byMs: Math.round(moved) },
        'the clock of this machine was set: the ends of keys, periods of budgets and times in logs follow it; synchronise it (NTP)',
      )
  }

  const timer = setInterval(check, CHECK_INTERVAL_MS).unref()
  return () => clearInterval(timer)
}

/** By how much the wall clock is ahead of the monotonic one, in milliseconds. */
function wallOffset(): number {
  return Date.now() - performance.now()
}
