import type { Clock } from './clock.ts'

/** Waits for many things, for the same time each, with one timer. */
export class Deadlines<T> {
  readonly #clock: Clock
  readonly #ms: number
  readonly #onDue: (what: T) => void
  /** In the order in which they are due. */
  readonly #due = new Map<T, number>()
  #armed = false

  constructor(clock: Clock, ms: number, onDue: (what: T) => void) {
    this.#clock = clock
    this.#ms = ms
    this.#onDue = onDue
  }

  add(what: T): void {
    this.#due.set(what, this.#clock.now() + this.#ms)
    this.#arm(this.#ms)
  }

  /** It has come: nothing is due any more. */
  delete(what: T): void {
    this.#due.delete(what)
  }

  /** How much is waited for. */
  get size(): number {
    return this.#due.size
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
    for (const [what, due] of this.#due) {
      if (due > now) {
        this.#arm(due - now)
        return
      }
      this.#due.delete(what)
      this.#onDue(what)
    }
  }
}
