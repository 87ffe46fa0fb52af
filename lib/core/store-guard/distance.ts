/** How long the time of an answer counts at least, in milliseconds. */
const WINDOW_MS = 15_000
/** A store that takes longer is not far away, but slow. */
const FARTHEST_MS = 500

/** How far away a store is: the least that it has lately taken for an answer. */
export class Distance {
  readonly #now: () => number
  #since: number
  /** The shortest answers of this window and of the one before it. */
  #least = 0
  #leastBefore = Number.POSITIVE_INFINITY

  /** @param now returns the time of a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#since = now()
  }

  /** Records how long the store took for an answer. */
  answered(ms: number): void {
    const now = this.#now()
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now
      this.#leastBefore = this.#least
      this.#least = ms
    } else if (this.#least === 0 || ms < this.#least) this.#least = ms
  }

  /** Forgets shorter answers, because the store has become slow. */
  reset(ms: number): void {
    this.#since = this.#now()
    this.#least = ms
    this.#leastBefore = Number.POSITIVE_INFINITY
  }

  /** In milliseconds; 0 until the store has answered. */
  get ms(): number {
    return Math.min(this.#least, this.#leastBefore, FARTHEST_MS)
  }
}
