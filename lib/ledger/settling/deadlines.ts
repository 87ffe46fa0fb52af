import type { Clock } from '../pool/clock.ts'

/** When something is due; empty once it has come. */
interface Deadline<T> {
  what: T | undefined
  readonly at: number
}

/** Something that is waited for, and knows its own deadline. */
export interface Awaited<T> {
  deadline: Deadline<T> | undefined
}

/** This many answered ones before the first that waits are dropped together. */
const DROPPED_AT_ONCE = 256

/**
 * Waits for many things, for the same time each, with one timer.
 *
 * They stand in an array and not in a Map: one that thousands come to and leave again makes itself anew every few of
 * them, and V8 keeps all that stood in each former one until a full collection.
 */
export class Deadlines<T extends Awaited<T>> {
  readonly #clock: Clock
  readonly #ms: number
  readonly #onDue: (what: T) => void
  /** In the order in which they are due. */
  #line: Deadline<T>[] = []
  #start = 0
  #size = 0
  #armed = false

  constructor(clock: Clock, ms: number, onDue: (what: T) => void) {
    this.#clock = clock
    this.#ms = ms
    this.#onDue = onDue
  }

  add(what: T): void {
    what.deadline = { what, at: this.#clock.now() + this.#ms }
    this.#line.push(what.deadline)
    this.#size++
    this.#arm(this.#ms)
  }

  /** It has come: nothing is due any more. */
  delete(what: T): void {
    const { deadline } = what
    if (!deadline) return
    what.deadline = undefined
    deadline.what = undefined
    this.#size--
    this.#dropAnswered()
  }

  /** How much is waited for. */
  get size(): number {
    return this.#size
  }

  #dropAnswered(): void {
    const line = this.#line
    while (this.#start < line.length && line[this.#start]?.what === undefined) this.#start++
    if (this.#start < DROPPED_AT_ONCE) return
    this.#line = line.slice(this.#start)
    this.#start = 0
  }

  /** Not called off when all has come: that would cost every call more than one idle timer does. */
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
    for (let first = this.#line[this.#start]; first; first = this.#line[this.#start]) {
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

/** The earlier of two times. */
export function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || (other !== undefined && other < one) ? other : one
}
