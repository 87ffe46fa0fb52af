import type { TimeoutPhase } from '../../core/call/index.ts'
import type { Timeouts } from '../../core/catalog/index.ts'

/** Is told which clock ran out, and after how many milliseconds. */
export interface ClockOwner {
  timedOut(phase: TimeoutPhase, afterMs: number): void
}

/**
 * The four clocks of an attempt on one timer: connect, first byte, idle between chunks, total. Progress is a note of
 * the time; the timer looks at it when it fires, so that a chunk costs nothing.
 */
export class AttemptClocks {
  readonly #owner: ClockOwner
  readonly #timeouts: Timeouts
  readonly #totalStart: number
  readonly #totalEnd: number
  #phase: 'connect' | 'first_byte' | 'idle' = 'connect'
  #phaseStart: number
  #phaseMs: number
  #paused = false
  #stopped = false
  #armedFor = 0
  #timer: NodeJS.Timeout | undefined

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
    this.#phaseMs = timeouts.connectMs
    this.#arm(start)
  }

  /** The request goes out on a connection. */
  connected(now: number): void {
    this.#enter('first_byte', this.#timeouts.firstByteMs, now)
  }

  /** The request goes out once more, on a connection that is yet to be made. */
  reconnecting(now: number): void {
    this.#enter('connect', this.#timeouts.connectMs, now)
  }

  /** Something of the answer arrived. */
  progress(now: number): void {
    if (this.#phase === 'idle') this.#phaseStart = now
    else this.#enter('idle', this.#timeouts.idleMs, now)
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
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #enter(phase: 'connect' | 'first_byte' | 'idle', ms: number, now: number): void {
    this.#phase = phase
    this.#phaseMs = ms
    this.#phaseStart = now
    // The timer is set for an earlier moment or a later one; it only has to be brought forward.
    if (now + ms < this.#armedFor && !this.#paused && !this.#stopped) this.#arm(now)
  }

  /** A paused phase has no end of its own: it is looked at again after one, for the caller may have come back. */
  #arm(now: number): void {
    clearTimeout(this.#timer)
    this.#armedFor = Math.min((this.#paused ? now : this.#phaseStart) + this.#phaseMs, this.#totalEnd)
    this.#timer = setTimeout(look, Math.max(1, Math.ceil(this.#armedFor - now)), this)
  }

  /** Tells the owner which clock ran out, or waits for the one that may be next. */
  look(): void {
    const now = performance.now()
    if (now >= this.#totalEnd) this.#owner.timedOut('total', now - this.#totalStart)
    else if (!this.#paused && now >= this.#phaseStart + this.#phaseMs)
      this.#owner.timedOut(this.#phase, now - this.#phaseStart)
    else this.#arm(now)
  }
}

function look(clocks: AttemptClocks): void {
  clocks.look()
}
