import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import type { Count, Limit } from './limit-store.ts'

/** The storage of rate-limiter-flexible, which its types leave out. */
interface Storage {
  get(key: string): RateLimiterRes | null
  incrby(key: string, points: number, seconds: number): RateLimiterRes
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

  read(key: string, windowMs: number): Count {
    const found = this._memoryStorage.get(key)
    // A window that is over may still be there: the timer that removes it can be late.
    if (!found || found.msBeforeNext <= 0) return { used: 0, resetMs: windowMs }
    return { used: found.consumedPoints, resetMs: withinWindow(found, windowMs) }
  }

  charge({ key, cost }: Limit, windowMs: number): Count {
    const after = this._memoryStorage.incrby(key, cost, windowMs / 1000)
    return { used: after.consumedPoints, resetMs: withinWindow(after, windowMs) }
  }
}

/** The timer that ends a window takes no notice when the clock is set back. */
function withinWindow({ msBeforeNext }: RateLimiterRes, windowMs: number): number {
  return Math.min(msBeforeNext, windowMs)
}
