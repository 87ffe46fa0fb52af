import { STOOD_STILL_MS } from '../../core/time-limit/index.ts'

/** An object whose clocks may run out. */
export interface Watched {
  /** The index in the list of watched objects; -1 if it is not watched. */
  place: number
  /**
   * Checks the clocks. It is called every few milliseconds.
   *
   * @param now the time of the monotonic clock.
   * @param stoodStillMs how long this process has just stood still; what it waited for may have waited for it.
   */
  look(now: number, stoodStillMs: number): void
}

/** The interval of the checks in milliseconds: a clock may run over by this much. */
const INTERVAL_MS = 20
/** The timer stops after this many checks with nothing to watch; starting one for every call would cost more. */
const MAX_IDLE_CHECKS = 100
/** How long sockets are read after a standstill before the clocks are judged: the rest of an answer may wait for room in them. */
const READ_AFTER_STANDSTILL_MS = 500

/** A list, not a Set: V8 keeps what has left a Set alive through the tables that the Set has outgrown. */
const watched: Watched[] = []
let timer: NodeJS.Timeout | undefined
let idleChecks = 0
let tickedAt = 0
let isReading = false
let stoodStillMs = 0

/** Starts watching an object. One timer serves all. */
export function watch(clocks: Watched): void {
  clocks.place = watched.push(clocks) - 1
  if (timer) return
  tickedAt = performance.now()
  timer = setInterval(tick, INTERVAL_MS).unref()
}

/** Stops watching an object; does nothing if it is not watched. */
export function unwatch(clocks: Watched): void {
  const { place } = clocks
  if (place < 0) return
  clocks.place = -1
  const last = watched.pop() as Watched
  if (last === clocks) return
  watched[place] = last
  last.place = place
}

/** What arrived before a clock ran out has to be read before the clock is judged. */
function tick(): void {
  const now = performance.now()
  const lateMs = now - tickedAt - INTERVAL_MS
  tickedAt = now
  if (lateMs >= STOOD_STILL_MS) stoodStillMs += lateMs
  if (isReading) return
  isReading = true
  if (stoodStillMs > 0) setTimeout(setImmediate, READ_AFTER_STANDSTILL_MS, check).unref()
  else setImmediate(check)
}

function check(): void {
  isReading = false
  const now = performance.now()
  // From the end: an object that is removed is replaced by the last one, which has been checked by then.
  for (let i = watched.length - 1; i >= 0; i--) watched[i]?.look(now, stoodStillMs)
  stoodStillMs = 0
  idleChecks = watched.length > 0 ? 0 : idleChecks + 1
  if (idleChecks < MAX_IDLE_CHECKS) return
  clearInterval(timer)
  timer = undefined
  idleChecks = 0
}
