import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'
import type { CircuitSettings } from '../../core/catalog/index.ts'
import { RollingCounts } from './rolling-counts.ts'

/** State of a line's circuit. */
export type CircuitState = 'closed' | 'open' | 'half_open'

const FAILED = new Error('the attempt failed')
const BUCKETS = 10
/** Of the calls that a circuit that was ended lets through: what they report changes nothing. */
const NO_ERA = -1

/**
 * The circuit of one line in this process. opossum keeps the state: it lets a probe through once the circuit has been
 * open for long enough, closes the circuit where that succeeds, and opens it again where it does not.
 *
 * What opens a closed circuit is counted here. opossum counts only what runs through `fire()`: each success would cost
 * 1.1 KB and 5 µs there, and attempts report at their first output, so that open streams do not dilute the failure rate.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  readonly #counts: RollingCounts
  readonly #breaker: CircuitBreaker<[Promise<void>], void>
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  #openedAt = 0
  /** Counts changes of state: a report from before the last one is not counted. */
  #era = 0
  /** What it was when it was closed for good; undefined while it is in use. */
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
      // Its own window holds the probes. A timer would turn it, of each line.
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
      // Of before the outage: one failure more would open the circuit again.
      this.#counts.clear()
    })
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
    if (!this.admits) return undefined
    if (this.#last) return new CircuitPass(this, NO_ERA)
    if (this.#breaker.closed) return new CircuitPass(this, this.#era)
    const probe = Promise.withResolvers<void>()
    // A breaker that is shut down never looks at the verdict, and a rejection nobody looks at ends the process.
    probe.promise.catch(ignoreVerdict)
    this.#breaker.fire(probe.promise).catch(ignoreVerdict)
    return new CircuitPass(this, this.#era, probe)
  }

  /** Counts an attempt, unless the circuit has changed its state since it was let through. */
  count(failed: boolean, era: number): void {
    if (era !== this.#era || this.#last) return
    this.#counts.count(1, failed ? 1 : 0)
    if (!failed) return
    const { errorPercent, minimumCalls } = this.#settings
    const { all, marked: failures } = this.#counts.totals
    if (all >= minimumCalls && failures * 100 >= errorPercent * all) this.#breaker.open()
  }

  /** A probe was let through that behind its first output turned out to be bad. */
  countLateProbe(): void {
    if (this.#breaker.closed) this.count(true, this.#era)
  }

  /** The probe ended without a verdict: another has to wait as long again. */
  abandonProbe(): void {
    if (!this.#last) this.#breaker.open()
  }

  /** Ends its timers. A call that still asks finds it as it was, and what that reports changes nothing. */
  close(): void {
    this.#last ??= { state: this.state, admits: this.admits }
    this.#breaker.shutdown()
  }

  #changed(to: CircuitState): void {
    this.#era++
    this.#changes[to]++
  }
}

/** What an attempt reports to the circuit that let it through. */
export class CircuitPass {
  readonly #circuit: Circuit
  readonly #era: number
  readonly #probe: PromiseWithResolvers<void> | undefined
  #told: 'nothing' | 'success' | 'all' = 'nothing'

  constructor(circuit: Circuit, era: number, probe?: PromiseWithResolvers<void>) {
    this.#circuit = circuit
    this.#era = era
    this.#probe = probe
  }

  /** The line did what it should, up to its first real output. */
  success(): void {
    if (this.#told !== 'nothing') return
    this.#told = 'success'
    if (this.#probe) this.#probe.resolve()
    else this.#circuit.count(false, this.#era)
  }

  /** The line failed; behind a success, too: its answer broke off. */
  failure(): void {
    const told = this.#told
    if (told === 'all') return
    this.#told = 'all'
    if (!this.#probe) this.#circuit.count(true, this.#era)
    else if (told === 'success') this.#circuit.countLateProbe()
    else this.#probe.reject(FAILED)
  }

  /** There is no verdict: the caller left, or the line refused for reasons of the request or of its own limits. */
  abandon(): void {
    if (this.#told !== 'nothing') return
    this.#told = 'all'
    if (this.#probe) this.#circuit.abandonProbe()
  }
}

/** The verdict is ours: opossum hands it back. */
function ignoreVerdict(): void {}
