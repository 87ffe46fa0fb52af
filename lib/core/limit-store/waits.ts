import type { RateLimiterAbstract } from 'rate-limiter-flexible'
import { GRACE_MS, MAX_WAIT_MS, PENALTY_MS } from './limit-store.ts'

/** The wait of a sender that retried early: its rest, and the place of the limit that refused among the sender's limits. */
export interface OwedWait {
  readonly waitMs: number
  readonly place: number
}

/**
 * Makes senders wait longer that retry too early: later than {@link GRACE_MS} after a refusal, and before the end of the
 * wait that the refusal announced. Each early retry adds {@link PENALTY_MS}, up to {@link MAX_WAIT_MS} from now. Only the
 * sender waits longer; others that share one of its limits do not.
 *
 * A limiter of rate-limiter-flexible keeps two records of a sender. `wait` lasts as long as the first refusal announced; its
 * points are that length in seconds, which dates the refusal. `penalty` lasts as long as the sender has to wait; its points
 * are the place of the limit that refused, from 1 on.
 */
export class Waits {
  readonly #limiter: RateLimiterAbstract
  readonly #msLeft: ((key: string) => Promise<number>) | undefined

  /** @param msLeft returns how many milliseconds a record lasts: almost always there is none, which spares the `get`. */
  constructor(limiter: RateLimiterAbstract, msLeft: ((key: string) => Promise<number>) | undefined) {
    this.#limiter = limiter
    this.#msLeft = msLeft
  }

  /** Returns the wait of a sender that retried early; undefined if there is none. */
  async owedBy(sender: string): Promise<OwedWait | undefined> {
    const key = penaltyKey(sender)
    if (this.#msLeft && (await this.#msLeft(key)) <= 0) return undefined
    const penalty = await this.#limiter.get(key)
    const waitMs = Number(penalty?.msBeforeNext ?? 0)
    return penalty && waitMs > 0 ? { waitMs, place: penalty.consumedPoints - 1 } : undefined
  }

  /**
   * Notes that a sender was refused for `waitMs`. Returns the wait to announce, in milliseconds.
   *
   * @param isOwed whether the sender's own wait refused it. After the time that was announced first a caller may have
   *   waited, so that nothing is added then.
   */
  async refused(sender: string, { waitMs, place }: OwedWait, isOwed: boolean): Promise<number> {
    const announced = await this.#limiter.get(waitKey(sender))
    const leftMs = Number(announced?.msBeforeNext ?? 0)
    if (!announced || leftMs <= 0) {
      if (isOwed) return waitMs
      // Redis counts whole seconds. Rounded down, the record never outlasts the wait.
      const seconds = Math.max(1, Math.floor(waitMs / 1000))
      await this.#limiter.set(waitKey(sender), seconds, seconds)
      return waitMs
    }
    const refusedAgoMs = announced.consumedPoints * 1000 - leftMs
    const prolongedMs = Math.min(waitMs + PENALTY_MS, MAX_WAIT_MS)
    if (refusedAgoMs <= GRACE_MS || prolongedMs <= waitMs) return waitMs
    const seconds = Math.ceil(prolongedMs / 1000)
    await this.#limiter.set(penaltyKey(sender), place + 1, seconds)
    return seconds * 1000
  }
}

function waitKey(sender: string): string {
  return `wait:${sender}`
}

function penaltyKey(sender: string): string {
  return `penalty:${sender}`
}
