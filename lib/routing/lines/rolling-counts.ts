/** Counts what happens over a rolling window, and how much of it is of the kind that is looked for. */
export class RollingCounts {
  readonly #bucketMs: number
  readonly #all: number[]
  readonly #marked: number[]
  /** Which span of time is counted now, from the start of the clock. */
  #span = 0

  /** The window is `buckets` spans of `bucketMs` milliseconds, the present one included. */
  constructor(bucketMs: number, buckets: number) {
    this.#bucketMs = bucketMs
    this.#all = new Array<number>(buckets).fill(0)
    this.#marked = new Array<number>(buckets).fill(0)
  }

  /** @param marked how many of them are of the kind that is looked for. */
  count(all: number, marked: number): void {
    const bucket = this.#now()
    this.#all[bucket] = (this.#all[bucket] as number) + all
    this.#marked[bucket] = (this.#marked[bucket] as number) + marked
  }

  /** Both counts of the window. */
  get totals(): { readonly all: number; readonly marked: number } {
    this.#now()
    return { all: sum(this.#all), marked: sum(this.#marked) }
  }

  /** The marked ones of the present span. */
  get markedNow(): number {
    return this.#marked[this.#now()] as number
  }

  clear(): void {
    this.#all.fill(0)
    this.#marked.fill(0)
  }

  /** The bucket of this moment, behind those that have passed out of the window. */
  #now(): number {
    const span = Math.floor(performance.now() / this.#bucketMs)
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
