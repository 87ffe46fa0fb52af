/** How many values are looked at when a key comes. Two keep the map at twice the size of what has not ended. */
const LOOKS = 2

/** How many are looked at where the map is full, and how many where all of those are worth keeping. */
const LOOKS_WHEN_FULL = 8
const MAX_LOOKS = 64

/** A value that is worth as much leaves the turn of the others while up to half of a full map does. */
const WORTH_KEEPING = 0.5

/** Values that are looked at in turn. */
class Turn<Value> {
  readonly values = new Map<string, Value>()
  #at = this.values.entries()

  /** Returns the value whose turn it is. There must be one. */
  next(): [string, Value] {
    let { value } = this.#at.next()
    if (!value) {
      this.#at = this.values.entries()
      value = this.#at.next().value
    }
    return value as [string, Value]
  }
}

/**
 * A map whose values expire, without a timer for each: whenever a key comes, a few others are looked at in turn, and those that
 * have ended are removed. So a flood of keys takes a bounded amount of memory, and no key pays for all others.
 *
 * Where it is full of values that have not ended, the one of those looked at that is worth least gives way, and among equals
 * the youngest: a subject that has used up most of its limit keeps its window, however many others come.
 */
export class ExpiringMap<Value> {
  readonly #endOf: (value: Value) => number
  readonly #worthOf: (value: Value) => number
  readonly #maxSize: number
  readonly #all = new Turn<Value>()
  readonly #kept = new Turn<Value>()

  /**
   * @param endOf when a value ends, on the clock whose time {@link set} is given.
   * @param worthOf how much a value matters to be kept, from 0 to 1.
   */
  constructor(
    endOf: (value: Value) => number,
    worthOf: (value: Value) => number = () => 0,
    maxSize = 1_000_000,
  ) {
    this.#endOf = endOf
    this.#worthOf = worthOf
    this.#maxSize = maxSize
  }

  /** The number of values, including expired ones that were not removed yet. */
  get size(): number {
    return this.#all.values.size + this.#kept.values.size
  }

  /** Returns the value of a key. It may have expired. */
  get(key: string): Value | undefined {
    const value = this.#all.values.get(key)
    return value === undefined && this.#kept.values.size > 0 ? this.#kept.values.get(key) : value
  }

  set(key: string, value: Value, now: number): void {
    if (this.#kept.values.has(key)) {
      this.#kept.values.set(key, value)
      return
    }
    if (!this.#all.values.has(key)) this.#makeRoom(now)
    this.#all.values.set(key, value)
  }

  #makeRoom(now: number): void {
    const isFull = this.size >= this.#maxSize
    let removed = this.#removeEndedOfKept(now)
    let least: string | undefined
    let leastWorth = Number.POSITIVE_INFINITY
    const { values } = this.#all
    for (let i = 0; i < (isFull ? MAX_LOOKS : LOOKS) && values.size > 0; i++) {
      if (i >= LOOKS_WHEN_FULL && (removed || least !== undefined)) break
      const [key, value] = this.#all.next()
      if (this.#endOf(value) <= now) removed = values.delete(key)
      else if (isFull) {
        const worth = this.#worthOf(value)
        if (worth >= WORTH_KEEPING && this.#kept.values.size < Math.floor(this.#maxSize / 2)) {
          values.delete(key)
          this.#kept.values.set(key, value)
        } else if (worth <= leastWorth) {
          least = key
          leastWorth = worth
        }
      }
    }
    if (!isFull || removed) return
    if (least !== undefined) values.delete(least)
    else this.#kept.values.delete(this.#kept.next()[0])
  }

  /** Looks at a few of the values that left the turn of the others. Returns whether one has ended. */
  #removeEndedOfKept(now: number): boolean {
    const { values } = this.#kept
    let removed = false
    for (let i = 0; i < LOOKS && values.size > 0; i++) {
      const [key, value] = this.#kept.next()
      if (this.#endOf(value) <= now) removed = values.delete(key)
    }
    return removed
  }
}
