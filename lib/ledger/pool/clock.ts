import { machine, timeLimit } from '../../core/timing/index.ts'

/** The clock of the lease pool. Tests use their own. */
export interface Clock {
  /** Monotonic time in milliseconds. It continues while the process is stopped, but not while the machine sleeps. */
  now(): number
  /** Milliseconds since the epoch. It can be set, and continues while the machine sleeps. */
  wall(): number
  /**
   * Calls `run` when `ms` have passed and everything that had arrived by then was read. So an answer does not count as
   * late if only this process was delayed.
   *
   * @param keepsAlive whether the timer keeps the process alive.
   * @returns a function that cancels the timer.
   */
  after(ms: number, run: () => void, keepsAlive?: boolean): () => void
  /** Returns how long a limit is while the machine is as busy as now. */
  limit(ms: number): number
}

export interface Moment {
  readonly now: number
  readonly wall: number
}

export const systemClock: Clock = {
  now: performance.now.bind(performance),
  wall: () => Date.now(),
  after: timeLimit,
  limit: (ms) => machine.limit(ms),
}

/** Reads both clocks. */
export function momentOf(clock: Clock): Moment {
  return { now: clock.now(), wall: clock.wall() }
}
