/** Counts events over a rolling window, and the marked ones among them. */
export class RollingCounts {
  readonly #bucketMs: number
  readonly #all: number[]
  readonly #marked: number[]
  /** The number of the current bucket since the start of the clock. */
  #span = 0
  #at = 0
  #unmarkedAt = -Infinity

  /** The window consists of `buckets` spans of `bucketMs` milliseconds, the current one included. */
  constructor(bucketMs: number, buckets: number) {
    this.#bucketMs = bucketMs
    this.#all = new Array<number>(buckets).fill(0)
    this.#marked = new Array<number>(buckets).fill(0)
  }

  /** @param marked how many of the events are marked. */
  count(all: number, marked: number): void {
    const bucket = this.#now()
    this.#all[bucket] = (this.#all[bucket] as number) + all
    this.#marked[bucket] = (this.#marked[bucket] as number) + marked
    if (all > marked) this.#unmarkedAt = this.#at
  }

  /** When an event that is not marked was last counted, on the monotonic clock. */
  get unmarkedAt(): number {
    return this.#unmarkedAt
  }

  get totals(): { readonly all: number; readonly marked: number } {
    this.#now()
    return { all: sum(this.#all), marked: sum(this.#marked) }
  }

  /** The marked events of the current span. */
  get markedNow(): number {
    return this.#marked[this.#now()] as number
  }

  clear(): void {
    this.#all.fill(0)
    this.#marked.fill(0)
  }

  /** Clears the buckets that have left the window, and returns the index of the current one. */
  #now(): number {
    this.#at = performance.now()
    const span = Math.floor(this.#at / this.#bucketMs)
    const buckets = this.#all.length
    if (span === this.#span) return span % buckets
    const passed = Math.min(buckets, span - this.#span)
    for (let i = 0; i < passed; i++) {
      this.#all[(span - i) % buckets] = 0
      this.#marked[(span - i) % buckets] = 0
    }
    this.#span = span
    return span % buckets
  }
}

function sum(counts: readonly number[]): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
