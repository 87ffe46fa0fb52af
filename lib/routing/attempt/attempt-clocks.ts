import type { TimeoutPhase } from '../../core/call/index.ts'
import type { Timeouts } from '../../core/catalog/index.ts'

/** Told which clock ran out, and after how many milliseconds. */
export type OnTimeout = (phase: TimeoutPhase, afterMs: number) => void

/**
 * The four clocks of an attempt on one timer: connect, first byte, idle between chunks, total. Progress is a note of
 * the time; the timer looks at it when it fires, so that a chunk costs nothing.
 */
export class AttemptClocks {
  readonly #timeouts: Timeouts
  readonly #totalEnd: number
  readonly #totalStart: number
  readonly #onTimeout: OnTimeout
  #phase: 'connect' | 'first_byte' | 'idle' = 'connect'
  #phaseStart: number
  #paused = false
  #timer: NodeJS.Timeout | undefined
  #armedFor = 0
  #state: 'new' | 'running' | 'lingering' | 'stopped' = 'new'
  #responseOver = false

  /**
   * @param start now, on the monotonic clock.
   * @param deadline when the whole call's time is up.
   */
  constructor(timeouts: Timeouts, start: number, deadline: number, onTimeout: OnTimeout) {
    this.#timeouts = timeouts
    this.#totalStart = start
    this.#totalEnd = Math.min(start + timeouts.totalMs, deadline)
    this.#phaseStart = start
    this.#onTimeout = onTimeout
  }

  start(): void {
    this.#state = 'running'
    this.#arm(this.#phaseStart)
  }

  connected(): void {
    this.#enter('first_byte', performance.now())
  }

  /** The request goes out once more on a connection yet to be made. */
  reconnecting(): void {
    this.#enter('connect', performance.now())
  }

  /** A chunk of the body arrived. */
  progress(now: number): void {
    if (this.#phase === 'idle') this.#phaseStart = now
    else this.#enter('idle', now)
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
    clearTimeout(this.#timer)
    this.#state = 'stopped'
  }

  /** The answer is whole; calls `cut` if the response has not ended by itself in time. */
  linger(ms: number, cut: () => void): void {
    this.stop()
    if (this.#responseOver) return
    this.#state = 'lingering'
    this.#timer = setTimeout(cut, ms).unref()
  }

  /** The response has ended. */
  responseEnded(): void {
    this.#responseOver = true
    if (this.#state === 'lingering') this.stop()
  }

  #enter(phase: 'connect' | 'first_byte' | 'idle', now: number): void {
    this.#phase = phase
    this.#phaseStart = now
    // The timer is set for an earlier moment or a later one; it only has to be brought forward.
    if (this.#state === 'running' && this.#phaseEnd() < this.#armedFor) this.#arm(now)
  }

  #phaseEnd(): number {
    return this.#paused ? Infinity : this.#phaseStart + this.#phaseLimit()
  }

  #phaseLimit(): number {
    const { connectMs, firstByteMs, idleMs } = this.#timeouts
    return this.#phase === 'connect' ? connectMs : this.#phase === 'first_byte' ? firstByteMs : idleMs
  }

  #arm(now: number): void {
    clearTimeout(this.#timer)
    // A paused phase has no end of its own: look again after one, for the caller may have come back.
    const phaseEnd = this.#paused ? now + this.#phaseLimit() : this.#phaseEnd()
    this.#armedFor = Math.min(phaseEnd, this.#totalEnd)
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.ceil(this.#armedFor - now)))
  }

  #look(): void {
    const now = performance.now()
    if (now >= this.#totalEnd) this.#onTimeout('total', now - this.#totalStart)
    else if (now >= this.#phaseEnd()) this.#onTimeout(this.#phase, now - this.#phaseStart)
    else this.#arm(now)
  }
}
