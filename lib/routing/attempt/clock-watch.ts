/** Something with clocks that may run out. */
export interface Watched {
  /** Is kept here; -1 where nobody watches. */
  place: number
  /** Is called every few milliseconds with the time of the monotonic clock. */
  look(now: number): void
}

/** How late a clock may be noticed to have run out, in milliseconds. */
const TURN_MS = 20
/** So many turns with nothing to look at end the timer: a new one for every call would cost more. */
const IDLE_TURNS = 100

const watched: Watched[] = []
let timer: NodeJS.Timeout | undefined
let idleTurns = 0

/** Begins to look at something every few milliseconds, by one timer for all. */
export function watch(clocks: Watched): void {
  clocks.place = watched.push(clocks) - 1
  timer ??= setInterval(turn, TURN_MS).unref()
}

/** Ends it; where it has ended nothing happens. */
export function unwatch(clocks: Watched): void {
  const { place } = clocks
  if (place < 0) return
  clocks.place = -1
  const last = watched.pop() as Watched
  if (last === clocks) return
  watched[place] = last
  last.place = place
}

function turn(): void {
  const now = performance.now()
  // From behind: whoever ends takes the last one's place, which has been looked at.
  for (let i = watched.length - 1; i >= 0; i--) watched[i]?.look(now)
  idleTurns = watched.length > 0 ? 0 : idleTurns + 1
  if (idleTurns < IDLE_TURNS) return
  clearInterval(timer)
  timer = undefined
  idleTurns = 0
}
