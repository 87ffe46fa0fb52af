import type { CircuitSettings } from '../../core/catalog/index.ts'
import type { FailureCounts } from './circuit-link.ts'
import { RollingCounts } from './rolling-counts.ts'

const BUCKETS = 10

/** The attempts of the window of a circuit, and whose of them failed. */
export class FailureWindow {
  readonly counts: RollingCounts
  readonly #settings: CircuitSettings
  /** The account that failed last, and when; then when any other account failed last. */
  #failedAccount: string | undefined
  #failedAt = -Infinity
  #otherFailedAt = -Infinity
  /** When the first attempt failed since one went well. */
  #failsSince = Infinity

  constructor(settings: CircuitSettings) {
    this.#settings = settings
    this.counts = new RollingCounts(settings.windowMs / BUCKETS, BUCKETS)
  }

  /** @param succeededAt when the attempt was counted as one that went well, on the monotonic clock; undefined = never. */
  fail(account: string, succeededAt?: number): void {
    if (this.#failedAt <= this.counts.unmarkedAt) this.#failsSince = performance.now()
    this.counts.count(1, 1)
    // It would be half a failure otherwise: answers that all break off would never be more than half of the calls.
    if (succeededAt !== undefined) this.counts.takeBack(succeededAt)
    if (account !== this.#failedAccount) {
      this.#otherFailedAt = this.#failedAt
      this.#failedAccount = account
    }
    this.#failedAt = performance.now()
  }

  clear(): void {
    this.counts.clear()
    this.#failedAccount = undefined
    this.#failedAt = -Infinity
    this.#otherFailedAt = -Infinity
    this.#failsSince = Infinity
  }

  /** When the first attempt failed since one went well, on the monotonic clock. */
  get failsSince(): number {
    return this.#failsSince
  }

  /** What the window holds; undefined if nothing in it has failed. */
  get failures(): FailureCounts | undefined {
    if (this.#failedAccount === undefined) return undefined
    const { all, marked: failures } = this.counts.totals
    if (failures === 0) return undefined
    const isAlone = performance.now() - this.#otherFailedAt >= this.#settings.windowMs
    return { all, failures, account: isAlone ? this.#failedAccount : null }
  }

  /** Whether an attempt went well after a time on the monotonic clock, and none has failed since. */
  wentWellSince(time: number): boolean {
    return this.counts.unmarkedAt > Math.max(time, this.#failedAt)
  }

  /**
   * Returns for whom the circuit must open: one account, or null for all; undefined if it stays closed.
   *
   * @param elsewhere what other processes have counted. It is not enough without a failure here.
   */
  verdict(elsewhere: FailureCounts | undefined): string | null | undefined {
    const here = this.failures
    if (!here) return undefined
    const { minimumCalls, errorPercent } = this.#settings
    const all = here.all + (elsewhere?.all ?? 0)
    const failures = here.failures + (elsewhere?.failures ?? 0)
    if (all < minimumCalls || failures * 100 < errorPercent * all) return undefined
    const isSame = elsewhere?.account === undefined || elsewhere.account === here.account
    return isSame ? here.account : null
  }
}
