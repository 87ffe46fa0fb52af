/** An object whose clocks may run out. */
export interface Watched {
  /** The index in the list of watched objects; -1 if it is not watched. */
  place: number
  /** Checks the clocks. It is called every few milliseconds with the time of the monotonic clock. */
  look(now: number): void
}

/** The interval of the checks in milliseconds: a clock may run over by this much. */
const INTERVAL_MS = 20
/** The timer stops after this many checks with nothing to watch; starting one for every call would cost more. */
const MAX_IDLE_CHECKS = 100

/** A list, not a Set: V8 keeps what has left a Set alive through the tables that the Set has outgrown. */
const watched: Watched[] = []
let timer: NodeJS.Timeout | undefined
let idleChecks = 0

/** Starts watching an object. One timer serves all. */
export function watch(clocks: Watched): void {
  clocks.place = watched.push(clocks) - 1
  timer ??= setInterval(check, INTERVAL_MS).unref()
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

function check(): void {
  const now = performance.now()
  // From the end: an object that is removed is replaced by the last one, which has been checked by then.
  for (let i = watched.length - 1; i >= 0; i--) watched[i]?.look(now)
  idleChecks = watched.length > 0 ? 0 : idleChecks + 1
  if (idleChecks < MAX_IDLE_CHECKS) return
  clearInterval(timer)
  timer = undefined
  idleChecks = 0
}
