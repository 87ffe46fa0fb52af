import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Count, Limit } from './limit-store.ts'

/** A window that is open, or was. */
interface Window {
  value: number
  readonly expiresAt: number | null
}

/** The storage of rate-limiter-flexible, which its types leave out. */
interface Storage {
  readonly _storage: ReadonlyMap<string, Window>
  set(key: string, points: number, seconds: number): unknown
}

/**
 * rate-limiter-flexible's memory counters, looked at before they are charged. Its own `consume` charges a refused
 * request too and answers by promise: between that and giving back, another request would be refused for nothing.
 */
export class MemoryCounters extends RateLimiterMemory {
  declare private readonly _memoryStorage: Storage

  constructor() {
    // Each request brings its own limit and window.
    super({ points: 0, duration: 0, keyPrefix: '' })
  }

  read(key: string, windowMs: number, now: number): Count {
    const found = this.#open(key, now)
    if (found === undefined) return { used: 0, resetMs: windowMs }
    // The timer that ends a window takes no notice when the clock is set back.
    return { used: found.value, resetMs: Math.min((found.expiresAt as number) - now, windowMs) }
  }

  charge({ key, cost }: Limit, windowMs: number, now: number): void {
    const found = this.#open(key, now)
    if (found === undefined) this._memoryStorage.set(key, cost, windowMs / 1000)
    else found.value += cost
  }

  /** A window that is over may still be there: the timer that removes it can be late. */
  #open(key: string, now: number): Window | undefined {
    const found = this._memoryStorage._storage.get(key)
    return found !== undefined && (found.expiresAt as number) > now ? found : undefined
  }
}
