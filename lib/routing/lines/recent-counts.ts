/** Counts events over a rolling window, and the marked ones among them. */
export class RecentCounts {
  readonly #bucketMs: number
  readonly #all: number[]
  readonly #marked: number[]
  /** The number of the current bucket since the start of the clock. */
  #span = 0

  /** The window consists of `buckets` spans of `bucketMs` milliseconds, the current one included. */
  constructor(bucketMs: number, buckets: number) {
    this.#bucketMs = bucketMs
    this.#all = new Array<number>(buckets).fill(0)
    this.#marked = new Array<number>(buckets).fill(0)
  }

  /** @param marked how many of the events are marked. */
  count(all: number, marked: number): void {
    const now = performance.now()
    if (now >= (this.#span + 1) * this.#bucketMs) this.#moveTo(now)
    const bucket = this.#span % this.#all.length
    this.#all[bucket] = (this.#all[bucket] as number) + all
    this.#marked[bucket] = (this.#marked[bucket] as number) + marked
  }

  get totals(): { readonly all: number; readonly marked: number } {
    this.#moveTo(performance.now())
    return { all: sum(this.#all), marked: sum(this.#marked) }
  }

  /** The marked events of the current span. */
  get markedNow(): number {
    this.#moveTo(performance.now())
    return this.#marked[this.#span % this.#marked.length] as number
  }

  /** Makes the span of a time the current one, and clears the buckets that have left the window. */
  #moveTo(now: number): void {
    const span = Math.floor(now / this.#bucketMs)
    const buckets = this.#all.length
    const passed = Math.min(buckets, span - this.#span)
    for (let i = 0; i < passed; i++) {
      this.#all[(span - i) % buckets] = 0
      this.#marked[(span - i) % buckets] = 0
    }
    this.#span = span
  }
}

function sum(counts: readonly number[]): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
