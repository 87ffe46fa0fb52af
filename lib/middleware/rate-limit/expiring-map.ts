/** The smallest size at which the map is swept. */
const MIN_SWEEP_SIZE = 1024

/**
 * A map whose values expire, without a timer for each: expired ones are removed whenever the size has doubled. At its
 * maximum size the map drops the oldest tenth of its values, so that a flood of keys takes a bounded amount of
 * memory.
 */
export class ExpiringMap<Value> {
  readonly #endOf: (value: Value) => number
  readonly #maxSize: number
  readonly #values = new Map<string, Value>()
  #sweepAt: number

  /** @param endOf when a value ends, on the clock whose time {@link set} is given. */
  constructor(endOf: (value: Value) => number, maxSize = 1_000_000) {
    this.#endOf = endOf
    this.#maxSize = maxSize
    this.#sweepAt = Math.min(MIN_SWEEP_SIZE, maxSize)
  }

  /** The number of values, including expired ones that were not removed yet. */
  get size(): number {
    return this.#values.size
  }

  /** Returns the value of a key. It may have expired. */
  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: Value, now: number): void {
    if (this.#values.size >= this.#sweepAt) this.#sweep(now)
    this.#values.set(key, value)
  }

  #sweep(now: number): void {
    for (const [key, value] of this.#values) if (this.#endOf(value) <= now) this.#values.delete(key)
    const kept = this.#maxSize * 0.9
    if (this.#values.size > kept) {
      for (const key of this.#values.keys()) {
        this.#values.delete(key)
        if (this.#values.size <= kept) break
      }
    }
    this.#sweepAt = Math.min(Math.max(MIN_SWEEP_SIZE, this.#values.size * 2), this.#maxSize)
  }
}
