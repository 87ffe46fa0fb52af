import { type Call, quietLogger } from '../../core/call/index.ts'
import type { Demand } from './limit-store.ts'
import type { RateLimitOptions } from './rate-limit-plan.ts'

/** So many requests in a row without a limit are no coincidence, such as visitors that have not logged in. */
const MANY = 100

/** Tells the operator once that a `rateLimit` has limited nothing so far. */
export class UnlimitedNotice {
  readonly #options: RateLimitOptions
  #requests = 0

  constructor(options: RateLimitOptions) {
    this.#options = options
  }

  /**
   * Notes what a request counts: nothing if no level applies, or if only tokens are limited and none are known.
   *
   * @returns whether that is settled: something is limited, or the operator was told.
   */
  settledBy(call: Call, demand: Demand | undefined): boolean {
    if (demand && (demand.slots.length > 0 || demand.charges.some(({ cost }) => cost > 0))) return true
    const { levels, logger = call.logger } = this.#options
    if (!levels && call.principal) return false
    this.#requests++
    if (levels && this.#requests < MANY) return false
    const mend = demand
      ? `no tokens were known of the first ${MANY} requests: mount readRequest before it, or give "tokens"`
      : levels
        ? `no level has applied to the first ${MANY} requests: check that "by" returns the subject, and the limits a number`
        : 'nobody is authenticated: mount authenticate before it, or give "levels"'
    quietLogger(logger).warn({ requestId: call.id }, `rateLimit: nothing is limited; ${mend}`)
    return true
  }
}
