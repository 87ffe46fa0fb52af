import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'
import type { CircuitSettings } from '../../core/catalog/index.ts'
import { RollingCounts } from './rolling-counts.ts'

/** State of a circuit. */
export type CircuitState = 'closed' | 'open' | 'half_open'

const BUCKETS = 10

/** What `enter` gives out: the epoch of the circuit, or the probe that the attempt is. */
export type Ticket = number | Probe

/** An attempt that decides whether a circuit closes. */
class Probe {
  readonly account: string
  readonly startedAt = performance.now()

  constructor(account: string) {
    this.account = account
  }
}

/**
 * The circuit of a line, or of one model on a line, in this process. opossum keeps the state and its timer: a circuit
 * that has been open for long enough lets a single probe through, which closes it or opens it again.
 *
 * What one account's calls did never closes the line to the others. A circuit that only one account's failures opened
 * holds for that account. The calls of others go through, and the first of them that fails opens the circuit for all.
 * If a probe of one account fails or stays without a verdict, only that account waits again; others may probe at once.
 *
 * The failures are counted here. opossum counts only what runs through `fire()`: each success would cost 1.1 KB and
 * 5 µs, and attempts report at their first output, so that open streams do not dilute the failure rate.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  readonly #counts: RollingCounts
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  /** Made when the circuit first opens: there is a circuit for each model on each line. */
  #breaker: CircuitBreaker | undefined
  #openedAt = 0
  /** Grows when the circuit closes or opens for all: a report from an earlier epoch is ignored. */
  #epoch = 0
  /** The account whose failures alone opened the circuit; undefined if it is open for all. */
  #holder: string | undefined
  /** Whether others than the holder may only probe, because the circuit was open for them, too. */
  #othersProbe = false
  /** The probe of the holder, or of anybody if the circuit is open for all. */
  #probe: Probe | undefined
  #probeOfOthers: Probe | undefined
  /** The account that failed last, and when; then when any other account failed last. */
  #failedAccount: string | undefined
  #failedAt = -Infinity
  #otherFailedAt = -Infinity
  /** The state at the call of `close`; undefined before it. */
  #last: CircuitState | undefined

  constructor(settings: CircuitSettings) {
    this.#settings = settings
    this.#counts = new RollingCounts(settings.windowMs / BUCKETS, BUCKETS)
  }

  /** The state, for operators: that of the holder, if the circuit is open for one account only. */
  get state(): CircuitState {
    if (this.#last) return this.#last
    const breaker = this.#breaker
    if (!breaker || breaker.closed) return 'closed'
    return breaker.opened ? 'open' : 'half_open'
  }

  /** The account that the circuit is open for; undefined if it is closed, or open for all. */
  get holder(): string | undefined {
    return this.#holder
  }

  /** How often the circuit has entered each state, for metrics. */
  get changes(): Readonly<Record<CircuitState, number>> {
    return this.#changes
  }

  /** Returns the state for the calls of an account. */
  stateFor(account: string): CircuitState {
    const { state } = this
    if (state === 'closed' || !this.#isOther(account)) return state
    return this.#othersProbe ? 'half_open' : 'closed'
  }

  /** Returns whether an attempt of an account would be let through now. */
  admits(account: string): boolean {
    if (!this.#breaker) return true
    const { state } = this
    if (state === 'closed') return true
    if (this.#isOther(account))
      return !this.#othersProbe || isFree(this.#probeOfOthers, account, this.#settings)
    return state === 'half_open' && isFree(this.#probe, account, this.#settings)
  }

  /** Returns the milliseconds until a probe may pass; at least 1 while the circuit does not admit. */
  retryAfterMs(account: string): number {
    if (this.admits(account)) return 0
    return Math.max(1, Math.ceil(this.#openedAt + this.#settings.resetMs - performance.now()))
  }

  /** Lets an attempt through, for which `admits` has just returned true. */
  enter(account: string): Ticket {
    if (!this.#breaker) return this.#epoch
    const state = this.stateFor(account)
    if (state !== 'half_open' || this.#last) return this.#epoch
    const probe = new Probe(account)
    // The probe of another account that has run for too long keeps nobody waiting.
    if (!this.#isOther(account) && this.#probe) this.#reopenFor(this.#probe)
    if (this.#isOther(account)) this.#probeOfOthers = probe
    else this.#probe = probe
    return probe
  }

  /** Counts an attempt that the line answered well, up to its first output. */
  succeed(ticket: Ticket): void {
    if (typeof ticket === 'number') {
      const isClosed = !this.#breaker || this.state === 'closed'
      if (isClosed && ticket === this.#epoch) this.#counts.count(1, 0)
    } else if (this.#decides(ticket)) this.#close()
  }

  /** Counts an attempt that failed through the fault of what the circuit stands for. */
  fail(ticket: Ticket, account: string): void {
    if (typeof ticket === 'number') {
      if (ticket === this.#epoch) this.#failed(account)
    } else if (ticket === this.#probeOfOthers) this.#openForAll()
    else if (this.#decides(ticket)) this.#reopenFor(ticket)
  }

  /** Counts the failure of an attempt that had succeeded up to its first output. */
  failLate(ticket: Ticket, account: string): void {
    if (typeof ticket === 'number') this.fail(ticket, account)
    else if (this.state === 'closed') this.#failed(account)
  }

  /** Ends a probe without a verdict. Its account waits again; others do not. */
  skip(ticket: Ticket): void {
    if (typeof ticket === 'number' || !this.#decides(ticket)) return
    if (ticket === this.#probeOfOthers) this.#probeOfOthers = undefined
    else this.#reopenFor(ticket)
  }

  /** Ends the timer. Running calls still see the last state, and their reports are ignored. */
  close(): void {
    this.#last ??= this.state
    this.#breaker?.shutdown()
  }

  #isOther(account: string): boolean {
    return this.#holder !== undefined && this.#holder !== account
  }

  /** Whether a probe is one that the circuit still waits for. */
  #decides(probe: Probe): boolean {
    return !this.#last && (probe === this.#probe || probe === this.#probeOfOthers)
  }

  #failed(account: string): void {
    if (this.#last) return
    if (this.state !== 'closed') {
      // The account that opened the circuit is not alone any more.
      if (this.#isOther(account) && !this.#othersProbe) this.#openForAll()
      return
    }
    this.#counts.count(1, 1)
    const now = performance.now()
    if (account !== this.#failedAccount) {
      this.#otherFailedAt = this.#failedAt
      this.#failedAccount = account
    }
    this.#failedAt = now
    const { errorPercent, minimumCalls, windowMs } = this.#settings
    const { all, marked: failures } = this.#counts.totals
    if (all < minimumCalls || failures * 100 < errorPercent * all) return
    if (now - this.#otherFailedAt < windowMs) this.#openForAll()
    else this.#open(account, false)
  }

  #openForAll(): void {
    this.#epoch++
    this.#open(undefined, false)
  }

  /** Opens the circuit again after a probe that failed or has no verdict. Only its account waits. */
  #reopenFor({ account }: Probe): void {
    this.#open(account, this.#holder === undefined || this.#othersProbe)
  }

  #open(holder: string | undefined, othersProbe: boolean): void {
    this.#holder = holder
    this.#othersProbe = othersProbe
    this.#probe = undefined
    if (!othersProbe) this.#probeOfOthers = undefined
    this.#openedAt = performance.now()
    this.#changes.open++
    this.#breaker ??= this.#newBreaker()
    // An open breaker ignores `open()` and keeps its old timer.
    this.#breaker.close()
    this.#breaker.open()
  }

  #close(): void {
    this.#epoch++
    this.#holder = undefined
    this.#othersProbe = false
    this.#probe = undefined
    this.#probeOfOthers = undefined
    // With the counts from before the outage, one more failure would open the circuit again.
    this.#counts.clear()
    this.#failedAccount = undefined
    this.#failedAt = -Infinity
    this.#otherFailedAt = -Infinity
    this.#changes.closed++
    this.#breaker?.close()
  }

  #newBreaker(): CircuitBreaker {
    const breaker = new CircuitBreaker(noAction, {
      timeout: false,
      resetTimeout: this.#settings.resetMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      // opossum's own counts stay empty. Without this, each breaker would have a timer that rotates them.
      rotateBucketController: new EventEmitter(),
    })
    breaker.on('halfOpen', () => {
      this.#changes.half_open++
    })
    return breaker
  }
}

/** Whether another probe may pass. One of another account blocks for as long as the circuit stays open at most. */
function isFree(running: Probe | undefined, account: string, { resetMs }: CircuitSettings): boolean {
  if (!running) return true
  return running.account !== account && performance.now() - running.startedAt >= resetMs
}

/** The breakers only keep states; no call runs through them. */
async function noAction(): Promise<void> {}
