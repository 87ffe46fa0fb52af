import { RateLimiterMemory } from 'rate-limiter-flexible'
import { LimiterStore, NEVER_REACHED } from '../../core/limit-store/index.ts'
import { MAX_TIMER_MS } from '../../core/options/index.ts'

/**
 * Limits of one process, in its memory.
 *
 * @example
 * app.use(rateLimit({ store: new MemoryLimitStore(), levels: [{ name: 'ip', by: (req) => req.ip, rpm: 60 }] }))
 */
export class MemoryLimitStore extends LimiterStore {
  // A subclass of the app may do anything.
  override readonly keepsTime = false

  constructor() {
    super(
      (windowMs) => {
        const duration = Math.min(windowMs, MAX_TIMER_MS) / 1000
        return new RateLimiterMemory({ points: NEVER_REACHED, duration, keyPrefix: '' })
      },
      { guard: 'none' },
    )
  }

  /** @throws TypeError if windows are longer than a timer of Node can be. */
  override checkWindow(windowMs: number): void {
    if (windowMs > MAX_TIMER_MS)
      throw new TypeError(
        `rateLimit: "windowMs" must be at most ${MAX_TIMER_MS} ms (24.8 days) in memory, not ${windowMs}; for longer windows use a store such as RedisLimitStore`,
      )
  }
}
