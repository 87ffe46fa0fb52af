import type { Clock } from '../../../lib/ledger/pool/clock.ts'

interface Timer {
  readonly at: number
  readonly run: () => void
}

/** A few turns of the event loop: what needs no time has happened then. */
export async function turns(count = 6): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate)
}

/** Time that passes when a test says so. */
export class VirtualClock implements Clock {
  #now = 0
  readonly #timers = new Set<Timer>()

  now(): number {
    return this.#now
  }

  wall(): number {
    return 1_700_000_000_000 + this.#now
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), run }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  limit(ms: number): number {
    return ms
  }

  /** Lets time pass, with all that is due on the way, in order. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms
    await turns()
    for (;;) {
      const next = this.#next(until)
      if (!next) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.run()
      await turns()
    }
    this.#now = until
  }

  /** Lets time pass while the process is stopped: what was due meanwhile is due when it goes on. */
  stopFor(ms: number): void {
    this.#now += ms
  }

  #next(until: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) if (timer.at <= until && (!next || timer.at < next.at)) next = timer
    return next
  }
}
