import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'
import type { CircuitSettings } from '../../core/catalog/index.ts'
import { RollingCounts } from './rolling-counts.ts'

/** State of a line's circuit. */
export type CircuitState = 'closed' | 'open' | 'half_open'

const FAILED = new Error('the attempt failed')
const BUCKETS = 10
/** The epoch of passes from a closed-down circuit: their reports are ignored. */
const NO_EPOCH = -1

/**
 * The circuit of one line in this process. opossum keeps the state: it lets a probe through once the circuit has been
 * open for long enough, closes the circuit if the probe succeeds, and opens it again if it fails.
 *
 * The failures that open a closed circuit are counted here. opossum counts only what runs through `fire()`: each
 * success would cost 1.1 KB and 5 µs, and attempts report at their first output, so that open streams do not dilute
 * the failure rate.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  readonly #counts: RollingCounts
  readonly #breaker: CircuitBreaker<[Promise<void>], void>
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  #openedAt = 0
  /** Counts changes of state: a report from an earlier epoch is ignored. */
  #epoch = 0
  /** The state at the call of `close`; undefined before it. */
  #last: { readonly state: CircuitState; readonly admits: boolean } | undefined

  constructor(settings: CircuitSettings) {
    this.#settings = settings
    this.#counts = new RollingCounts(settings.windowMs / BUCKETS, BUCKETS)
    const window = new EventEmitter()
    this.#breaker = new CircuitBreaker((verdict) => verdict, {
      timeout: false,
      resetTimeout: settings.resetMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      // opossum's window holds only probes. Without this, each line would have a timer that rotates it.
      rotateBucketController: window,
    })
    this.#breaker.on('open', () => {
      this.#changed('open')
      this.#openedAt = performance.now()
      window.emit('rotate')
    })
    this.#breaker.on('halfOpen', () => this.#changed('half_open'))
    this.#breaker.on('close', () => {
      this.#changed('closed')
      // With the counts from before the outage, one more failure would open the circuit again.
      this.#counts.clear()
    })
  }

  get state(): CircuitState {
    if (this.#last) return this.#last.state
    if (this.#breaker.closed) return 'closed'
    return this.#breaker.opened ? 'open' : 'half_open'
  }

  /** How often the circuit has entered each state, for metrics. */
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

  /** Returns a pass if an attempt may go through. A half-open circuit gives out one pass, for the probe. */
  enter(): CircuitPass | undefined {
    if (!this.admits) return undefined
    if (this.#last) return new CircuitPass(this, NO_EPOCH)
    if (this.#breaker.closed) return new CircuitPass(this, this.#epoch)
    const probe = Promise.withResolvers<void>()
    // A breaker that is shut down never handles the verdict, and an unhandled rejection ends the process.
    probe.promise.catch(ignoreVerdict)
    this.#breaker.fire(probe.promise).catch(ignoreVerdict)
    return new CircuitPass(this, this.#epoch, probe)
  }

  /** Counts an attempt, unless the circuit has changed its state since it gave out the pass. */
  count(failed: boolean, epoch: number): void {
    if (epoch !== this.#epoch || this.#last) return
    this.#counts.count(1, failed ? 1 : 0)
    if (!failed) return
    const { errorPercent, minimumCalls } = this.#settings
    const { all, marked: failures } = this.#counts.totals
    if (all >= minimumCalls && failures * 100 >= errorPercent * all) this.#breaker.open()
  }

  /** Counts a probe that succeeded at its first output and failed later. */
  countLateProbe(): void {
    if (this.#breaker.closed) this.count(true, this.#epoch)
  }

  /** Opens the circuit again after a probe without a verdict. The next probe waits as long again. */
  abandonProbe(): void {
    if (!this.#last) this.#breaker.open()
  }

  /** Ends the timers. Running calls still see the last state, and their reports are ignored. */
  close(): void {
    this.#last ??= { state: this.state, admits: this.admits }
    this.#breaker.shutdown()
  }

  #changed(to: CircuitState): void {
    this.#epoch++
    this.#changes[to]++
  }
}

/** An attempt's permission to go through a circuit, and the means to report its result. */
export class CircuitPass {
  readonly #circuit: Circuit
  readonly #epoch: number
  readonly #probe: PromiseWithResolvers<void> | undefined
  #reported: 'nothing' | 'success' | 'all' = 'nothing'

  constructor(circuit: Circuit, epoch: number, probe?: PromiseWithResolvers<void>) {
    this.#circuit = circuit
    this.#epoch = epoch
    this.#probe = probe
  }

  /** Reports that the line answered well, up to its first output. */
  success(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'success'
    if (this.#probe) this.#probe.resolve()
    else this.#circuit.count(false, this.#epoch)
  }

  /** Reports that the line failed. After a success it means that the answer broke off. */
  failure(): void {
    const reported = this.#reported
    if (reported === 'all') return
    this.#reported = 'all'
    if (!this.#probe) this.#circuit.count(true, this.#epoch)
    else if (reported === 'success') this.#circuit.countLateProbe()
    else this.#probe.reject(FAILED)
  }

  /**
   * Reports that there is no verdict: the caller left, or the line refused because of the request or its own limits.
   */
  abandon(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    if (this.#probe) this.#circuit.abandonProbe()
  }
}

/** Discards the result that opossum returns: it is the verdict that was passed in. */
function ignoreVerdict(): void {}
