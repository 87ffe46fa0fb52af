import type { Clock } from '../pool/clock.ts'

/** What a {@link StallWatch} works with. */
export interface StallWatchDeps {
  readonly clock: Clock
  /** The oldest may wait that long, in milliseconds. */
  readonly stallMs: number
  /** Since when the oldest waits; undefined where nothing does. */
  readonly oldest: () => number | undefined
  readonly onChange: (stalled: boolean) => void
}

/** Watches whether something has waited too long; costs nothing while nothing waits. */
export class StallWatch {
  readonly #deps: StallWatchDeps
  /** Whether the oldest has waited too long. */
  stalled = false
  #watching = false

  constructor(deps: StallWatchDeps) {
    this.#deps = deps
  }

  /** Something waits. */
  begin(): void {
    if (!this.#watching) this.#watch(this.#deps.stallMs)
  }

  /** Something waits no longer. */
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

  /** While it is stalled nothing is due by itself: each answer judges it anew. */
  #judge(): void {
    const { clock, stallMs, oldest, onChange } = this.#deps
    const since = oldest()
    const age = since === undefined ? 0 : clock.now() - since
    const stalled = age >= stallMs
    if (!stalled && since !== undefined && !this.#watching) this.#watch(stallMs - age)
    if (stalled === this.stalled) return
    this.stalled = stalled
    onChange(stalled)
  }
}
