import type { Clock } from '../pool/clock.ts'

/** The deadline of an item; empty once the item has been deleted. */
interface Deadline<T> {
  what: T | undefined
  readonly at: number
}

/** An item with a deadline. */
export interface WithDeadline<T> {
  deadline: Deadline<T> | undefined
}

/** Deleted entries at the front are dropped together, in groups of this size. */
const DROPPED_AT_ONCE = 256

/**
 * Waits for many items, each for about the same time, with one timer.
 *
 * The items are in an array instead of a Map: a Map that thousands of items enter and leave is rebuilt again and again,
 * and V8 keeps the items of each old table until a full collection.
 */
export class Deadlines<T extends WithDeadline<T>> {
  readonly #clock: Clock
  readonly #ms: () => number
  readonly #onDue: (what: T) => void
  /** In the order of the deadlines. */
  #queue: Deadline<T>[] = []
  /** The deadline of the last item. */
  #last = 0
  #start = 0
  #size = 0
  #armed = false

  constructor(clock: Clock, ms: () => number, onDue: (what: T) => void) {
    this.#clock = clock
    this.#ms = ms
    this.#onDue = onDue
  }

  add(what: T): void {
    const ms = this.#ms()
    this.#last = Math.max(this.#last, this.#clock.now() + ms)
    what.deadline = { what, at: this.#last }
    this.#queue.push(what.deadline)
    this.#size++
    this.#arm(ms)
  }

  /** Deletes an item that has been answered. */
  delete(what: T): void {
    const { deadline } = what
    if (!deadline) return
    what.deadline = undefined
    deadline.what = undefined
    this.#size--
    this.#dropAnswered()
  }

  /** The number of waiting items. */
  get size(): number {
    return this.#size
  }

  #dropAnswered(): void {
    const line = this.#queue
    while (this.#start < line.length && line[this.#start]?.what === undefined) this.#start++
    if (this.#start < DROPPED_AT_ONCE) return
    this.#queue = line.slice(this.#start)
    this.#start = 0
  }

  /**
   * Starts the timer. It is not cancelled when the last item leaves: cancelling it per call would cost more than one
   * idle timer.
   */
  #arm(inMs: number): void {
    if (this.#armed) return
    this.#armed = true
    this.#clock.after(inMs, () => {
      this.#armed = false
      this.#check()
    })
  }

  #check(): void {
    const now = this.#clock.now()
    for (let first = this.#queue[this.#start]; first; first = this.#queue[this.#start]) {
      if (first.at > now) {
        this.#arm(first.at - now)
        return
      }
      const { what } = first
      if (what) {
        this.delete(what)
        this.#onDue(what)
      } else this.#dropAnswered()
    }
  }
}

/** Returns the earlier of two times. */
export function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || (other !== undefined && other < one) ? other : one
}
