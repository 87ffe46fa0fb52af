import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'
import type { CircuitSettings } from '../../core/catalog/index.ts'

/** State of a line's circuit (spec 3). */
export type CircuitState = 'closed' | 'open' | 'half_open'

/** What an attempt reports to the circuit that let it through. Only the first report counts. */
export interface CircuitPass {
  /** The line did what it should, up to its first real output. */
  success(): void
  failure(): void
  /** No verdict: the caller left, or the line refused for reasons of the request or of its own limits. */
  abandon(): void
}

type Breaker = CircuitBreaker<[Promise<void>], void>

/** The counting side of opossum's Status, which its types leave out. */
interface RollingCounts {
  increment(property: 'fires'): void
}

const FAILED = new Error('the attempt failed')
/** opossum opens above the threshold; ours opens at it. */
const AT_THRESHOLD = 1e-6
const BUCKETS = 10

/**
 * The circuit of one line in this process, on opossum. Attempts report once they have a verdict instead of running
 * inside `fire()`, so that open streams do not dilute the failure rate; only a probe occupies the breaker meanwhile.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  #breaker: Breaker
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  #openedAt = 0
  /** Counts changes of state: a report from before the last one never reaches the breaker. */
  #era = 0
  /** What it was when it was closed for good; undefined while it is in use. */
  #last: { readonly state: CircuitState; readonly admits: boolean } | undefined

  constructor(settings: CircuitSettings) {
    this.#settings = settings
    this.#breaker = this.#newBreaker()
  }

  get state(): CircuitState {
    if (this.#last) return this.#last.state
    if (this.#breaker.closed) return 'closed'
    return this.#breaker.opened ? 'open' : 'half_open'
  }

  /** How often it has come into each state, for metrics. */
  get changes(): Readonly<Record<CircuitState, number>> {
    return this.#changes
  }

  /** Whether an attempt would be let through now. */
  get admits(): boolean {
    if (this.#last) return this.#last.admits
    return this.#breaker.closed || (this.#breaker.halfOpen && this.#breaker.pendingClose)
  }

  /** Milliseconds until a probe may pass; at least 1 while the circuit does not admit. */
  get retryAfterMs(): number {
    if (this.state === 'closed') return 0
    return Math.max(1, Math.ceil(this.#openedAt + this.#settings.resetMs - performance.now()))
  }

  /** Lets an attempt through, or does not. Of a half-open circuit's callers one gets the probe. */
  enter(): CircuitPass | undefined {
    if (this.#last) return this.#last.admits ? new OrdinaryPass(() => {}) : undefined
    if (this.#breaker.closed) return this.#ordinaryPass()
    return this.admits ? this.#probePass() : undefined
  }

  /** Notes a failure behind the first output, which the pass has already reported as a success. */
  failLate(pass: CircuitPass): void {
    if (pass instanceof OrdinaryPass) pass.report(false)
    else if (this.#breaker.closed) this.#report(false)
  }

  /** Ends its timers. A call that still asks finds it as it was, and what that reports changes nothing. */
  close(): void {
    this.#last ??= { state: this.state, admits: this.admits }
    this.#breaker.shutdown()
  }

  #newBreaker(): Breaker {
    const { errorPercent, minimumCalls, windowMs, resetMs } = this.#settings
    const breaker: Breaker = new CircuitBreaker((verdict: Promise<void>) => verdict, {
      timeout: false,
      errorThresholdPercentage: errorPercent - AT_THRESHOLD,
      volumeThreshold: minimumCalls,
      rollingCountTimeout: windowMs,
      rollingCountBuckets: BUCKETS,
      resetTimeout: resetMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rotateBucketController: bucketClock(windowMs),
    })
    breaker.on('open', () => {
      this.#changed('open')
      this.#openedAt = performance.now()
    })
    breaker.on('halfOpen', () => this.#changed('half_open'))
    // opossum keeps the failures of before the outage in its window: one more would open the circuit again.
    breaker.on('close', () => {
      this.#changed('closed')
      this.#breaker = this.#newBreaker()
      queueMicrotask(() => breaker.shutdown())
    })
    return breaker
  }

  #changed(to: CircuitState): void {
    this.#era++
    this.#changes[to]++
  }

  #ordinaryPass(): CircuitPass {
    const era = this.#era
    return new OrdinaryPass((good) => {
      if (era === this.#era) this.#report(good)
    })
  }

  #probePass(): CircuitPass {
    const breaker = this.#breaker
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#fire(promise)
    let reported = false
    const once = (report: () => void) => (): void => {
      if (reported) return
      reported = true
      report()
    }
    return {
      success: once(resolve),
      failure: once(() => reject(FAILED)),
      abandon: once(() => breaker.open()),
    }
  }

  /**
   * A success in a closed circuit only dilutes its failure rate, so it is counted and no more: `fire()` would take
   * promises for it, and keep its latency although nobody asks for percentiles.
   */
  #report(good: boolean): void {
    if (good) (this.#breaker.status as unknown as RollingCounts).increment('fires')
    else this.#fire(Promise.reject(FAILED))
  }

  /** A breaker that is shut down never looks at the verdict, and a rejection nobody looks at ends the process. */
  #fire(verdict: Promise<void>): void {
    verdict.catch(ignoreVerdict)
    this.#breaker.fire(verdict).catch(ignoreVerdict)
  }
}

class OrdinaryPass implements CircuitPass {
  readonly #report: (good: boolean) => void
  #reported = false

  constructor(report: (good: boolean) => void) {
    this.#report = report
  }

  success(): void {
    this.#once(true)
  }

  failure(): void {
    this.#once(false)
  }

  abandon(): void {
    this.#reported = true
  }

  /** A second report, for a failure behind the first output. */
  report(good: boolean): void {
    this.#report(good)
  }

  #once(good: boolean): void {
    if (this.#reported) return
    this.#reported = true
    this.#report(good)
  }
}

/** The verdict is ours: opossum hands it back, or says that the circuit opened in the meantime. */
function ignoreVerdict(): void {}

const clocks = new Map<number, EventEmitter>()

/**
 * Turns the buckets of all circuits with the same window by one timer; opossum's default is a timer for each. The
 * timer lives as long as a circuit listens.
 */
function bucketClock(windowMs: number): EventEmitter {
  const known = clocks.get(windowMs)
  if (known) return known
  const clock = new EventEmitter().setMaxListeners(0)
  const timer = setInterval(
    () => {
      clock.emit('rotate')
      if (clock.listenerCount('rotate') > 0) return
      clearInterval(timer)
      clocks.delete(windowMs)
    },
    Math.ceil(windowMs / BUCKETS),
  ).unref()
  clocks.set(windowMs, clock)
  return clock
}
