import type { Clock } from '../pool/clock.ts'

/** The parts that {@link StallWatch} works with. */
export interface StallWatchDeps {
  readonly clock: Clock
  /** Returns how long the oldest charge may wait, in milliseconds. */
  readonly stallMs: () => number
  /** Returns since when the oldest charge has waited; undefined if none waits. */
  readonly oldest: () => number | undefined
  readonly onChange: (stalled: boolean) => void
}

/** Watches whether a charge has waited for too long. It costs nothing while none waits. */
export class StallWatch {
  readonly #deps: StallWatchDeps
  /** Whether the oldest charge has waited for too long. */
  stalled = false
  #watching = false

  constructor(deps: StallWatchDeps) {
    this.#deps = deps
  }

  /** Records that a charge waits. */
  begin(): void {
    if (!this.#watching) this.#watch(this.#deps.stallMs())
  }

  /** Records that a charge no longer waits. */
  passed(): void {
    if (this.stalled) this.#judge()
  }

  #watch(inMs: number): void {
    this.#watching = true
    this.#deps.clock.after(inMs, () => {
      this.#watching = false
      this.#judge()
    })
  }

  /** Checks the oldest charge. During a stall there is no timer: each answer checks again. */
  #judge(): void {
    const { clock, stallMs, oldest, onChange } = this.#deps
    const since = oldest()
    const most = stallMs()
    const age = since === undefined ? 0 : clock.now() - since
    const stalled = age >= most
    if (!stalled && since !== undefined && !this.#watching) this.#watch(most - age)
    if (stalled === this.stalled) return
    this.stalled = stalled
    onChange(stalled)
  }
}
