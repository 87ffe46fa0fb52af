/** The longest rest at a time, whatever the upstream asks for. */
const MAX_REST_MS = 60_000
/** The rests after answers that do not say how long: the first, and the longest. */
const FIRST_REST_MS = 2000
const MAX_UNSAID_REST_MS = 30_000
/** More than the error that sums and differences of the clock's fractions have. */
const CLOCK_ERROR_MS = 0.001

/** The rests of a line after 429s, for one model or one path of look-ups. */
export class Rest {
  #restUntil = 0
  /** The length of the last rest that the upstream did not ask for; 0 if there was an answer since. */
  #unsaidMs = 0

  /** Called after each 429, with the length of the last rest that the upstream did not ask for, or 0. */
  onRest: ((unsaidMs: number) => void) | undefined
  /** Called when the rest was ended. */
  onLift: (() => void) | undefined
  /** Called when the rest is of no use any more. */
  onEnd: (() => void) | undefined

  /** Whole milliseconds until the rest ends; 0 if there is none. */
  get restMs(): number {
    if (this.#restUntil === 0) return 0
    // Without CLOCK_ERROR_MS a rest of 60 s could be one of 61.
    return Math.max(0, Math.ceil(this.#restUntil - performance.now() - CLOCK_ERROR_MS))
  }

  /** Whether there was nothing but 429 since the last rest began. */
  get recovering(): boolean {
    return this.#unsaidMs > 0
  }

  /**
   * Begins a rest after a 429.
   *
   * @param saidMs how long the upstream asks to wait; undefined if it does not say. The rests then double while the
   * 429s go on.
   * @returns the milliseconds until the rest ends.
   */
  rest(saidMs: number | undefined): number {
    const now = performance.now()
    if (saidMs !== undefined) this.#restUntil = Math.max(this.#restUntil, now + Math.min(MAX_REST_MS, saidMs))
    else if (this.restMs === 0) {
      // Calls that ran at the same time have begun the rest already.
      const goesOn = now - this.#restUntil < MAX_UNSAID_REST_MS - CLOCK_ERROR_MS
      this.#unsaidMs =
        goesOn && this.#unsaidMs > 0 ? Math.min(MAX_UNSAID_REST_MS, 2 * this.#unsaidMs) : FIRST_REST_MS
      this.#restUntil = now + this.#unsaidMs
    }
    this.onRest?.(this.#unsaidMs)
    return this.restMs
  }

  /** Rests as long as another process does, if that is longer. */
  restAlong(ms: number, unsaidMs: number): void {
    this.#restUntil = Math.max(this.#restUntil, performance.now() + Math.min(MAX_REST_MS, ms))
    this.#unsaidMs = Math.max(this.#unsaidMs, unsaidMs)
  }

  /** Notes an answer: the next rest is a first one again. A call that began before the rest says nothing about it. */
  answered(): void {
    if (this.#unsaidMs > 0 && this.restMs === 0) this.#unsaidMs = 0
  }

  /** Ends the rest. */
  lift(): void {
    this.#restUntil = 0
    this.#unsaidMs = 0
    this.onLift?.()
  }

  close(): void {
    this.onEnd?.()
  }
}
