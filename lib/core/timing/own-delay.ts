/** Taken before any test replaces them. */
const now = performance.now.bind(performance)
const { setInterval, clearInterval } = globalThis

const EVERY_MS = 25
const WINDOW_MS = 1000
/** On a machine that is not busy, timers are late by less in a window. */
const IDLE_MS = 100
/** The measurement stops when no limit was asked for in this time. */
const UNUSED_MS = 5000
/** For each millisecond of delay here, those who are waited for have so many more. */
const SHARE = 8
/** No time limit becomes longer than so many times as long. */
const MOST = 8

/** By how much timers were late, in milliseconds, in this window and the one before it. */
let delayMs = 0
let delayBeforeMs = 0
let windowEnd = 0
let due = 0
let askedAt = 0
let timer: NodeJS.Timeout | undefined

/** How busy this machine is. */
export const machine = {
  /**
   * Returns a time limit as it is for stores and other processes on this machine: longer while the timers of this process are
   * late, because then the others wait for a core as well. On a machine that is not busy it is `ms`.
   */
  limit(ms: number): number {
    askedAt = now()
    if (!timer) {
      due = askedAt + EVERY_MS
      windowEnd = askedAt + WINDOW_MS
      timer = setInterval(measure, EVERY_MS).unref()
    }
    const delay = Math.max(0, delayMs - IDLE_MS) + Math.max(0, delayBeforeMs - IDLE_MS)
    return ms + Math.min((MOST - 1) * ms, SHARE * delay)
  },
}

function measure(): void {
  const at = now()
  const lateMs = Math.max(0, at - due)
  delayMs += lateMs
  due = at + EVERY_MS
  if (at >= windowEnd) {
    delayBeforeMs = delayMs
    delayMs = 0
    windowEnd = at + WINDOW_MS
  }
  // While this process stood still, nobody could ask.
  if (at - askedAt - lateMs < UNUSED_MS) return
  clearInterval(timer)
  timer = undefined
  delayMs = 0
  delayBeforeMs = 0
}
