import type { TimeoutPhase } from '../../core/call/index.ts'
import type { Timeouts } from '../../core/catalog/index.ts'
import { unwatch, type Watched, watch } from './clock-watch.ts'

/** Is told which clock ran out, and after how many milliseconds. */
export interface ClockOwner {
  timedOut(phase: TimeoutPhase, afterMs: number): void
}

/**
 * The four clocks of an attempt: connect, first byte, idle between chunks, total. Progress is a note of the time, so that
 * a chunk costs nothing; one timer looks at the clocks of all attempts.
 */
export class AttemptClocks implements Watched {
  /** Its place among all that are watched. */
  place = -1
  readonly #owner: ClockOwner
  readonly #timeouts: Timeouts
  readonly #totalStart: number
  readonly #totalEnd: number
  #phase: 'connect' | 'first_byte' | 'idle' = 'connect'
  #phaseStart: number
  #paused = false

  /**
   * Starts the clocks.
   *
   * @param start now, on the monotonic clock.
   * @param totalEnd when the total clock runs out; Infinity where there is none.
   */
  constructor(owner: ClockOwner, timeouts: Timeouts, start: number, totalEnd: number) {
    this.#owner = owner
    this.#timeouts = timeouts
    this.#totalStart = start
    this.#totalEnd = totalEnd
    this.#phaseStart = start
    watch(this)
  }

  /** The request goes out on a connection. */
  connected(now: number): void {
    this.#phase = 'first_byte'
    this.#phaseStart = now
  }

  /** The request goes out once more, on a connection that is yet to be made. */
  reconnecting(now: number): void {
    this.#phase = 'connect'
    this.#phaseStart = now
  }

  /** Something of the answer arrived. */
  progress(now: number): void {
    this.#phase = 'idle'
    this.#phaseStart = now
  }

  /** Whether the upstream is being kept waiting. */
  get paused(): boolean {
    return this.#paused
  }

  /** The caller is slower than the upstream: silence is not the upstream's. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#phaseStart = performance.now()
  }

  stop(): void {
    unwatch(this)
  }

  /** Tells the owner which clock has run out, if one has. */
  look(now: number): void {
    if (now >= this.#totalEnd) this.#owner.timedOut('total', now - this.#totalStart)
    else if (!this.#paused && now >= this.#phaseStart + this.#phaseMs)
      this.#owner.timedOut(this.#phase, now - this.#phaseStart)
  }

  get #phaseMs(): number {
    const { connectMs, firstByteMs, idleMs } = this.#timeouts
    return this.#phase === 'connect' ? connectMs : this.#phase === 'first_byte' ? firstByteMs : idleMs
  }
}
