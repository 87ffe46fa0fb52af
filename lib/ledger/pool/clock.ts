/** Time as the lease pool sees it. A test brings its own. */
export interface Clock {
  /** Milliseconds that never go back; they go on while the process is stopped, not while the machine sleeps. */
  now(): number
  /** Milliseconds since the epoch; may be set, and goes on while the machine sleeps. */
  wall(): number
  /**
   * Calls `run` once `ms` have passed and all that had come by then was read: where it was this process that was held
   * up, an answer is not taken for late.
   *
   * @param keepsAlive whether the process does not end before.
   * @returns a function that calls it off.
   */
  after(ms: number, run: () => void, keepsAlive?: boolean): () => void
}

/** A moment on both clocks. */
export interface Moment {
  readonly now: number
  readonly wall: number
}

/** The machine's clocks. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run, keepsAlive = false) {
    let read: NodeJS.Immediate | undefined
    const timer = setTimeout(() => {
      read = setImmediate(run)
    }, ms)
    if (!keepsAlive) timer.unref()
    return () => {
      clearTimeout(timer)
      clearImmediate(read)
    }
  },
}

/** Both clocks at once. */
export function momentOf(clock: Clock): Moment {
  return { now: clock.now(), wall: clock.wall() }
}
