import { type Logger, type OpenCall, quietLogger } from '../../core/call/index.ts'
import type { Demand } from '../../core/limit-store/index.ts'

/** So many requests in a row without a limit are no coincidence, such as visitors that have not logged in. */
const MANY = 100

/** Warns the operator once that a `rateLimit` has limited nothing so far. */
export class UnlimitedNotice {
  readonly #hasLevels: boolean
  readonly #logger: Logger | undefined
  #requests = 0
  #isSettled = false

  /**
   * @param hasLevels whether the app has given levels of its own.
   * @param logger defaults to that of the call.
   */
  constructor(hasLevels: boolean, logger: Logger | undefined) {
    this.#hasLevels = hasLevels
    this.#logger = logger
  }

  /** Notes the demand of a request. It limits nothing if no level applies, or if only tokens are limited and none are known. */
  note(call: OpenCall, demand: Demand | undefined): void {
    if (this.#isSettled) return
    if (demand && (demand.slots.length > 0 || demand.charges.some(({ cost }) => cost > 0))) {
      this.#isSettled = true
      return
    }
    if (!this.#hasLevels && call.principal) return
    this.#requests++
    if (this.#hasLevels && this.#requests < MANY) return
    this.#isSettled = true
    const advice = demand
      ? `no tokens were known of the first ${MANY} requests: mount readRequest before it, or give "tokens"`
      : this.#hasLevels
        ? `no level has applied to the first ${MANY} requests: check that "by" returns the subject, and the limits a number`
        : 'nobody is authenticated: mount authenticate before it, or give "levels"'
    const logger = quietLogger(this.#logger ?? call.logger)
    logger.warn({ requestId: call.id }, `rateLimit: nothing is limited; ${advice}`)
  }
}
